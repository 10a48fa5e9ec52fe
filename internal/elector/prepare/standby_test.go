package prepare

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/offer"
	"github.com/goneli/neli/internal/lease"
)

func standing(locals ...int32) map[offer.Place]bool {
	roles := map[offer.Place]bool{}
	for _, local := range locals {
		roles[offer.Place{Local: local}] = true
	}
	return roles
}

func TestStandbysArePreparedLast(t *testing.T) {
	p := newPreparing(2)
	require.Empty(t, p.Stand(standing(1, 2, 5)))
	p.offered(1, at(0), 7)
	do := p.step(at(0))
	require.Equal(t, []int32{7, 1}, locals(do.Begin))
	require.Len(t, do.Say, 1)
	require.Empty(t, p.Returned(do.Begin[0], true, at(0)))
	require.Empty(t, p.Returned(do.Begin[1], true, at(0)))
	require.Equal(t, []int32{2, 5}, locals(p.step(at(time.Second)).Begin))
	require.True(t, p.IsReady(offer.Place{Local: 1}))
	counts := p.Counts(at(time.Second))
	require.Equal(t, []int{3, 1}, []int{counts.Standbys, counts.StandbysReady})
}

func TestStandbysEnd(t *testing.T) {
	p := newPreparing(9)
	p.Stand(standing(1, 2, 3))
	begun := p.step(at(0)).Begin
	require.Len(t, begun, 3)
	for _, b := range begun {
		p.Returned(b, true, at(0))
	}
	require.Empty(t, p.Held(offer.Place{Local: 1}, "b", false), "whoever holds it")
	require.Empty(t, p.step(at(time.Hour)).Begin)
	require.Equal(t, []Why{Led}, reasons(p.Held(offer.Place{Local: 2}, "me", true)))
	require.Equal(t, []End{{begun[2], Relieved}}, p.Stand(standing(1)))
	require.Equal(t, []Why{Unwilling}, reasons(p.Quit()))
	require.Empty(t, p.by)
	p.Stand(standing(4, 5))
	require.Empty(t, p.Quit())
	require.True(t, p.IsIdle())
	require.Equal(t, clock.Mono(clock.Never), p.Due(true), "nothing waits for a place")
}

func TestStandbyOutlastsItsOffer(t *testing.T) {
	for name, ends := range map[string]func(p preparing) []End{
		"called off":     func(p preparing) []End { return p.offered(2, at(0)) },
		"unconfirmed":    func(p preparing) []End { return p.step(at(2 * testT)).End },
		"held elsewhere": func(p preparing) []End { return p.Held(offer.Place{Local: 1}, "b", false) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPreparing(9)
			p.offered(1, at(0), 1)
			p.Stand(standing(1))
			begun := p.step(at(0)).Begin
			require.Len(t, begun, 1)
			p.Returned(begun[0], true, at(0))
			require.Empty(t, ends(p))
			require.Len(t, p.by, 1)
			require.Equal(t, []Why{Relieved}, reasons(p.Stand(nil)), "now it is neither")
		})
	}
	p := newPreparing(9)
	p.Stand(standing(1))
	p.offered(1, at(0), 1)
	require.Len(t, p.step(at(0)).Begin, 1)
	require.Empty(t, p.Stand(nil), "it is offered")
}

func TestStandbyThatFailedIsTriedAgain(t *testing.T) {
	p := newPreparing(1)
	p.Stand(standing(1))
	begun := p.step(at(0)).Begin
	require.Equal(t, []Why{Failed}, reasons(p.Returned(begun[0], false, at(time.Second))))
	require.Equal(t, at(time.Second+rest).Mono, p.Due(true))
	require.Empty(t, p.step(at(time.Second+rest-1)).Begin)
	require.Len(t, p.step(at(time.Second+rest)).Begin, 1)
	require.Equal(t, clock.Mono(at(time.Second+rest).Mono.Add(testFor)), p.Due(true))
}

const (
	testT   = 5 * time.Second
	testFor = 10 * time.Second
)

var at = clock.HourAnd // an instant after the beginning of a test

func prepares(most int) lease.Prepares { return lease.Prepares{Most: most, For: testFor} }

func all(int32) bool        { return true }
func none(offer.Place) bool { return false }

// preparing is a Preparer of which tests end calls.
type preparing struct{ *Preparer }

func newPreparing(most int) preparing { return preparing{NewPreparer(prepares(most), testT)} }

var fromA = offer.From{Process: "a"}

// offered passes on process a's offer of roles.
func (p preparing) offered(n uint64, now clock.Instant, roles ...int32) []End {
	return p.Offered(fromA, 0, int64(n), &lease.Offer{N: n, Roles: roles}, true, all, now)
}

func (p preparing) step(now clock.Instant) Do { return p.Step(true, none, now) }

func locals(begun []Begin) (out []int32) {
	for _, b := range begun {
		out = append(out, b.Local)
	}
	return out
}

func reasons(ended []End) (out []Why) {
	for _, e := range ended {
		out = append(out, e.Why)
	}
	return out
}

// states returns what is said, without its number.
func states(say []Say) (out []lease.Prepared) {
	for _, s := range say {
		s.State.N = 0
		out = append(out, s.State)
	}
	return out
}

// There may be 131,072 standbys.
func TestStepsDoNotLookAtAllStandbys(t *testing.T) {
	p := newPreparing(16)
	roles := map[offer.Place]bool{}
	for local := range int32(10_000) {
		roles[offer.Place{Local: local}] = true
	}
	p.Stand(roles)
	for next := int32(0); next < 10_000; {
		begun := p.step(at(0)).Begin
		require.Len(t, begun, 16)
		require.Len(t, p.hot, 16)
		for _, b := range begun {
			require.Equal(t, next, b.Local)
			p.Returned(b, true, at(0))
			next++
		}
	}
	require.Empty(t, p.hot)
	require.Empty(t, p.queue)
	require.Equal(t, clock.Mono(clock.Never), p.Due(true))
	all := p.by
	p.by = nil
	counts := p.Counts(at(0))
	require.Equal(t, []int{10_000, 10_000}, []int{counts.Standbys, counts.StandbysReady}, "nor does Counts")
	p.by = all
	p.Stand(standing(1, 2))
	p.Held(offer.Place{Local: 2}, "me", true)
	counts = p.Counts(at(0))
	require.Equal(t, []int{1, 1}, []int{counts.Standbys, counts.StandbysReady})
}

func TestStandbysThatEndedAreForgotten(t *testing.T) {
	p := newPreparing(1)
	p.Stand(standing(9))
	require.Len(t, p.step(at(0)).Begin, 1, "it never returns")
	for range 3 {
		p.Quit()
		p.Stand(standing(1, 2, 3))
		require.Empty(t, p.step(at(0)).Begin)
	}
	require.Len(t, p.queue, 3)
}

func TestStandbyThatFailedAnOfferIsTriedAgain(t *testing.T) {
	p := newPreparing(1)
	p.Stand(standing(0, 1))
	first := p.step(at(0)).Begin
	p.offered(1, at(0), 1)
	p.Returned(first[0], true, at(0))
	begun := p.step(at(0)).Begin
	require.Equal(t, []int32{1}, locals(begun), "it is offered, and waits as a standby")
	p.Returned(begun[0], false, at(0))
	require.Empty(t, p.offered(2, at(0)))
	require.Empty(t, p.step(at(rest-1)).Begin)
	require.Equal(t, at(rest).Mono, p.Due(true))
	require.Equal(t, []int32{1}, locals(p.step(at(rest)).Begin))
}
