package prepare

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/offer"
	"github.com/goneli/neli/internal/lease"
)

func TestOfferedRolesArePreparedAndReported(t *testing.T) {
	p := newPreparing(2)
	require.Empty(t, p.offered(1, at(0), 3, 5, 7))
	do := p.step(at(0))
	require.Equal(t, []int32{3, 5}, locals(do.Begin), "two at once")
	require.Equal(t, []Say{{To: fromA, Offset: 1, State: lease.Prepared{N: 1, Of: 1, Running: []int32{3, 5}}}}, do.Say)
	require.Empty(t, p.Returned(do.Begin[0], true, at(0)))
	require.Equal(t, []Why{Failed}, reasons(p.Returned(do.Begin[1], false, at(0))))
	do = p.step(at(sayEvery))
	require.Equal(t, []int32{7}, locals(do.Begin))
	require.Equal(t, []lease.Prepared{{Of: 1, Running: []int32{7}, Ready: []int32{3}, Failed: []int32{5}}}, states(do.Say))
	require.EqualValues(t, 2, do.Say[0].State.N)

	require.Empty(t, p.offered(2, at(time.Second), 3, 5, 7))
	do = p.step(at(time.Second))
	require.Empty(t, do.Begin, "a repeated offer begins nothing anew")
	require.Equal(t, []lease.Prepared{{Of: 2, Running: []int32{7}, Ready: []int32{3}, Failed: []int32{5}}}, states(do.Say))

	require.Equal(t, Counts{Begun: 3, Ready: 1, Failed: 1, Running: 1, Longest: time.Second - sayEvery}, p.Counts(at(time.Second)))
}

func TestStatesAreNotReportedTooOften(t *testing.T) {
	p := newPreparing(1)
	p.offered(1, at(0), 3, 5)
	do := p.step(at(0))
	require.Len(t, do.Say, 1)
	p.Returned(do.Begin[0], true, at(0))
	require.Empty(t, p.step(at(sayEvery-1)).Say, "one was just said")
	require.Equal(t, at(sayEvery).Mono, p.Due(true))
	require.Len(t, p.step(at(sayEvery)).Say, 1)
	require.Empty(t, p.step(at(time.Second)).Say, "nothing has changed")
}

func TestOnlyRolesOfTheSenderArePrepared(t *testing.T) {
	p := newPreparing(9)
	p.Offered(fromA, 0, 0, &lease.Offer{N: 1, Roles: []int32{3, 5}}, true, func(local int32) bool { return local == 5 }, at(0))
	do := p.step(at(0))
	require.Equal(t, []int32{5}, locals(do.Begin))
	require.Equal(t, []lease.Prepared{{Of: 1, Running: []int32{5}}}, states(do.Say))
}

func TestTooLargeOfferIsTruncated(t *testing.T) {
	p := newPreparing(1)
	p.offered(1, at(0), 1, 2, 3, 4, 5, 6, 7)
	require.Len(t, p.by, 4)
}

func TestRoleNoLongerOfferedIsCalledOff(t *testing.T) {
	p := newPreparing(1)
	p.offered(1, at(0), 3, 5)
	begun := p.step(at(0)).Begin
	require.Empty(t, p.offered(2, at(0), 3), "role 5 was not begun with")
	require.Equal(t, []End{{begun[0], CalledOff}}, p.offered(3, at(0)))
	require.Empty(t, p.by)
	require.Empty(t, p.step(at(sayEvery)).Begin)

	p.offered(4, at(time.Second), 3)
	require.Empty(t, p.step(at(time.Second)).Begin, "the former call has not returned, and there is one slot")
	counts := p.Counts(at(time.Second))
	require.Equal(t, []int{1, 1}, []int{counts.Running, counts.Stuck})
	require.Empty(t, p.Returned(begun[0], true, at(0)))
	again := p.step(at(time.Second)).Begin
	require.Equal(t, []int32{3}, locals(again), "what the former call has prepared is gone")
	require.Empty(t, p.Returned(again[0], true, at(0)))
	require.Equal(t, []lease.Prepared{{Of: 4, Ready: []int32{3}}}, states(p.step(at(2*time.Second)).Say))
}

// The member reads the Release, and then an offer that was sent after it. It must not call off a role that was
// released in its favour.
func TestReleasedRoleIsNotCalledOff(t *testing.T) {
	p := newPreparing(1)
	p.offered(1, at(0), 3)
	p.step(at(0))
	released := func(int32) bool { return false }
	require.Empty(t, p.Offered(fromA, 0, 0, &lease.Offer{N: 2}, true, released, at(time.Second)), "it was released to this process")
	require.Equal(t, []Why{Led}, reasons(p.Held(offer.Place{Local: 3}, "me", true)))
}

func TestLateOfferIsIgnored(t *testing.T) {
	p := newPreparing(2)
	p.offered(5, at(0), 3)
	begun := p.step(at(0)).Begin
	require.Empty(t, p.offered(4, at(time.Second), 7), "role 3 was offered later")
	do := p.step(at(time.Second))
	require.Empty(t, do.Begin)
	require.Empty(t, do.Say)
	require.Empty(t, p.Returned(begun[0], true, at(0)))
	require.Equal(t, []lease.Prepared{{Of: 5, Ready: []int32{3}}}, states(p.step(at(time.Second)).Say))
}

func TestOffersOfSeveralHoldersAreSeparate(t *testing.T) {
	p := newPreparing(9)
	b, second := offer.From{Process: "b"}, offer.From{Process: "a", Shard: 1}
	p.offered(7, at(0), 3)
	p.Offered(b, 0, 9, &lease.Offer{N: 1, Roles: []int32{4}}, true, all, at(0))
	p.Offered(second, 1, 2, &lease.Offer{N: 6, Roles: []int32{3}}, true, all, at(0))
	do := p.step(at(0))
	require.Len(t, do.Begin, 3, "each has a number of its own, and so has each shard")
	require.Equal(t, []Say{{To: fromA, Log: 0, Offset: 7, State: lease.Prepared{N: 1, Of: 7, Running: []int32{3}}},
		{To: second, Log: 1, Offset: 2, State: lease.Prepared{N: 2, Of: 6, Running: []int32{3}}},
		{To: b, Log: 0, Offset: 9, State: lease.Prepared{N: 3, Of: 1, Running: []int32{4}}}}, do.Say)
	require.Equal(t, []Why{CalledOff}, reasons(p.offered(8, at(0))), "the others' are not called off")
}

func TestUrgentOffersArePreparedFirst(t *testing.T) {
	p := newPreparing(2)
	p.offered(1, at(0), 1, 2, 3)
	p.Offered(offer.From{Process: "b"}, 0, 0, &lease.Offer{N: 1, Roles: []int32{8, 9}, Urgent: true}, true, all, at(0))
	require.Equal(t, []int32{8, 9}, locals(p.step(at(0)).Begin))
}

func TestPrepareThatTakesTooLongHasFailed(t *testing.T) {
	p := newPreparing(1)
	p.offered(1, at(0), 3, 5)
	begun := p.step(at(0)).Begin
	require.Empty(t, p.step(at(testFor-1)).End)
	p.offered(2, at(testFor-1), 3, 5)
	require.LessOrEqual(t, p.Due(true), at(testFor).Mono)
	do := p.step(at(testFor))
	require.Equal(t, []End{{begun[0], Late}}, do.End)
	require.Empty(t, do.Begin, "it keeps its slot until it returns")
	require.Equal(t, []lease.Prepared{{Of: 2, Failed: []int32{3}}}, states(do.Say))
	require.Empty(t, p.Returned(begun[0], true, at(0)), "it was told that this counts no more")
	do = p.step(at(testFor + time.Second))
	require.Equal(t, []int32{5}, locals(do.Begin))
	require.Equal(t, []lease.Prepared{{Of: 2, Running: []int32{5}, Failed: []int32{3}}}, states(do.Say))
}

func TestUnconfirmedPreparationExpires(t *testing.T) {
	p := newPreparing(1)
	p.offered(1, at(0), 3)
	do := p.step(at(0))
	p.Returned(do.Begin[0], true, at(0))
	require.Empty(t, p.step(at(2*testT-1)).End)
	require.Equal(t, at(2*testT).Mono, p.Due(true))
	require.Empty(t, p.Step(true, func(at offer.Place) bool { return at.Local == 3 }, at(2*testT)).End, "it was released to this process")
	require.Greater(t, p.Due(true), at(2*testT).Mono)
	require.Equal(t, []Why{Unconfirmed}, reasons(p.step(at(3*testT)).End))
	require.Empty(t, p.by)
	require.Equal(t, clock.Mono(clock.Never), p.Due(true))
}

func TestPreparationsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(p preparing) []End
		want []Why
	}{
		"another process leads the role":   {func(p preparing) []End { return p.Held(offer.Place{Local: 3}, "b", false) }, []Why{Elsewhere}},
		"its holder begins a new term":     {func(p preparing) []End { return p.Held(offer.Place{Local: 3}, "a", false) }, nil},
		"this process leads it":            {func(p preparing) []End { return p.Held(offer.Place{Local: 3}, "me", true) }, []Why{Led}},
		"a role that is not prepared":      {func(p preparing) []End { return p.Held(offer.Place{Local: 4}, "b", false) }, nil},
		"this process closes":              {func(p preparing) []End { return p.Quit() }, []Why{Unwilling, Unwilling}},
		"R is smaller":                     {func(p preparing) []End { return p.Exclude(func(at offer.Place) bool { return at.Local >= 5 }) }, []Why{Unwanted}},
		"the log begins anew":              {func(p preparing) []End { return p.Anew(0, 0, true) }, []Why{Unwanted, Unwanted}},
		"another log begins anew":          {func(p preparing) []End { return p.Anew(1, 1, true) }, nil},
		"one of several logs begins anew":  {func(p preparing) []End { return p.Anew(0, 0, false) }, nil},
		"an offer comes while it may not":  {func(p preparing) []End { return p.Offered(fromA, 0, 0, &lease.Offer{N: 2}, false, all, at(0)) }, nil},
		"what is offered has changed":      {func(p preparing) []End { return p.offered(2, at(0), 5) }, []Why{CalledOff}},
		"the holder says the same of both": {func(p preparing) []End { return p.offered(2, at(0), 3, 5) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPreparing(2)
			p.offered(1, at(0), 3, 5)
			require.Len(t, p.step(at(0)).Begin, 2)
			require.Equal(t, c.want, reasons(c.end(p)))
			require.Len(t, p.by, 2-len(c.want))
		})
	}
}

func TestReviewEndsNeedlessPreparations(t *testing.T) {
	p := newPreparing(9)
	p.offered(1, at(0), 1, 2, 3, 4, 5, 6)
	require.Len(t, p.step(at(0)).Begin, 6)
	ended := p.Review(func(at offer.Place) Holding {
		return map[int32]Holding{1: {Process: "a"}, 2: {Process: "me", Own: true}, 3: {Own: true}, 4: {Process: "b"}, 5: {Process: "a", Unwanted: true}}[at.Local]
	})
	got := map[int32]Why{}
	for _, e := range ended {
		got[e.Local] = e.Why
	}
	require.Equal(t, map[int32]Why{2: Led, 3: Led, 4: Elsewhere, 5: Unwanted}, got)
	require.Len(t, p.by, 2)
}

func TestUnwillingProcessNeitherPreparesNorAnswers(t *testing.T) {
	p := newPreparing(2)
	p.Offered(fromA, 0, 0, &lease.Offer{N: 1, Roles: []int32{3}}, false, all, at(0))
	require.Empty(t, p.Step(false, none, at(0)))
	require.Empty(t, p.step(at(time.Second)), "what was said before does not count")
	p.offered(2, at(time.Second), 3)
	do := p.step(at(time.Second))
	require.Len(t, do.Begin, 1)
	require.Len(t, do.Say, 1)
	p.Returned(do.Begin[0], true, at(0))
	require.Equal(t, []Why{Unwilling}, reasons(p.Quit()))
	require.Empty(t, p.Step(false, none, at(2*time.Second)))
	require.Equal(t, clock.Mono(clock.Never), p.Due(false))
}

func TestOffersOfSilentHoldersAreForgotten(t *testing.T) {
	p := newPreparing(2)
	p.offered(1, at(0))
	p.step(at(4*testT - 1))
	require.False(t, p.IsIdle())
	p.step(at(4 * testT))
	require.True(t, p.IsIdle())
}

// A Pong names the offset of a Ping. That Ping does not exist in a log that has begun anew.
func TestNoAnswerToAnOfferOfAFormerLog(t *testing.T) {
	p := newPreparing(2)
	p.offered(1, at(0), 3)
	p.Anew(0, 0, true)
	require.Empty(t, p.step(at(time.Second)))
	p.offered(2, at(time.Second), 3)
	require.Len(t, p.step(at(time.Second)).Say, 1)
}

func TestCountsOfPreparations(t *testing.T) {
	p := newPreparing(9)
	p.offered(1, at(0), 1, 2, 3, 4)
	begun := p.step(at(0)).Begin
	p.Returned(begun[0], true, at(0))
	p.Returned(begun[1], false, at(0))
	p.Held(offer.Place{Local: 1}, "me", true)
	p.Held(offer.Place{Local: 3}, "me", true)
	p.Quit()
	require.Equal(t, Counts{Begun: 4, Ready: 1, Failed: 1, Led: 1, Ended: 1, Running: 2, Stuck: 2, Longest: time.Second}, p.Counts(at(time.Second)),
		"role 3 is led unprepared, and 4 is let go")
}
