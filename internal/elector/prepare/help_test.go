package prepare

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/offer"
	"github.com/goneli/neli/internal/lease"
)

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

// offered is told that a offers some roles.
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
