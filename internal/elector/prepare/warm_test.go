package prepare

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/offer"
	"github.com/goneli/neli/internal/lease"
)

const (
	tick      = 10 * time.Millisecond
	someRoles = 60
	mostCalls = 3
)

// entry is a record of the log that holder a and members b and c share.
type entry struct {
	from, to string
	offers   *lease.Offer
	state    *lease.Prepared
	release  int32 // the role of a Release or Claim; −1: it is neither
	claim    bool  // it is a Claim of that role
}

type flight struct {
	entry
	at time.Duration
}

// attempt is a Prepare in progress.
type attempt struct {
	Begin
	ends time.Duration
	ok   bool
	deaf time.Duration // until then it does not notice that its context ends
}

type member struct {
	*Preparer
	name  string
	reads int
	calls []attempt
	holds map[int32]bool  // roles that a holds, by what it has read
	open  map[uint64]bool // contexts that have not ended
	mine  map[int32]bool
}

type given struct {
	to     string
	since  clock.Instant
	drains time.Duration // until then the application works; 0: it was not asked
}

// world is a holder that hands its roles to two members, over a log that loses records or delays them.
type world struct {
	t       *testing.T
	r       *rand.Rand
	calm    bool
	now     time.Duration
	log     []entry
	flying  []flight
	leads   map[int32]bool // by what a has read
	offers  *offer.Offers
	reads   int
	gives   map[int32]*given
	members []*member

	warm, calledOff, failures int
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 1)), leads: map[int32]bool{}, offers: offer.NewOffers(time.Second, testT), gives: map[int32]*given{}}
	for _, name := range []string{"b", "c"} {
		w.members = append(w.members, &member{Preparer: NewPreparer(prepares(mostCalls), testT), name: name, holds: map[int32]bool{}, open: map[uint64]bool{},
			mine: map[int32]bool{}})
	}
	for local := range int32(someRoles) {
		w.leads[local] = true
		for _, m := range w.members {
			m.holds[local] = true
		}
	}
	return w
}

// send lets a record reach the log, or loses it. Real Releases and Claims are repeated, so here they are not lost.
func (w *world) send(e entry) {
	late := time.Duration(w.r.Int64N(int64(20 * time.Millisecond)))
	if !w.calm && w.r.IntN(20) == 0 {
		late = time.Duration(w.r.Int64N(int64(2 * time.Second)))
	}
	if e.release < 0 && !w.calm && w.r.IntN(20) == 0 {
		return
	}
	w.flying = append(w.flying, flight{e, w.now + late})
}

func (w *world) at() clock.Instant { return at(w.now) }

func (w *world) step() {
	w.now += tick
	w.flying = slices.DeleteFunc(w.flying, func(f flight) bool {
		if f.at > w.now {
			return false
		}
		w.log = append(w.log, f.entry)
		return true
	})
	for ; w.reads < len(w.log) && (w.calm || w.r.IntN(30) > 0); w.reads++ {
		w.holderReads(w.log[w.reads])
	}
	w.hand()
	for _, o := range w.offers.Sends(len(w.gives) > someRoles/2, w.at()) {
		w.send(entry{from: "a", to: o.To.Process, offers: &o.Offer, release: -1})
	}
	for _, m := range w.members {
		w.memberSteps(m)
	}
}

func (w *world) holderReads(e entry) {
	switch {
	case e.state != nil && e.to == "a":
		w.offers.Answered(offer.From{Process: e.from}, e.state, w.at())
	case e.release >= 0 && !e.claim:
		w.offers.Given(e.to, offer.Place{Local: e.release})
		delete(w.gives, e.release)
		w.leads[e.release] = false
	}
}

// hand begins and ends hand-overs.
func (w *world) hand() {
	for local := range int32(someRoles) {
		g, place := w.gives[local], offer.Place{Local: local}
		switch {
		case !w.leads[local] || g != nil && g.drains < 0: // it was released
		case g == nil:
			if !w.calm && w.r.IntN(1500) == 0 {
				g = &given{to: w.members[w.r.IntN(2)].name, since: w.at()}
				w.gives[local] = g
				w.offers.Name(g.to, prepares(mostCalls), place)
			}
		case g.drains == 0:
			h := offer.Handing{Standing: w.offers.Standing(g.to, place, g.since, w.at()), Keeps: true, Takes: true}
			switch c := h.Conditions(); {
			case c.Ready:
				w.offers.Asked(g.to, place)
				g.drains = w.now + time.Duration(w.r.Int64N(int64(time.Second)))
			case c.Refused || c.Over || !w.calm && w.r.IntN(500) == 0:
				w.calledOff++
				w.offers.CallOff(g.to, place)
				delete(w.gives, local)
			}
		case w.now >= g.drains:
			g.drains = -1
			w.send(entry{from: "a", to: g.to, release: local})
		}
	}
}

func (w *world) memberSteps(m *member) {
	for ; m.reads < len(w.log) && (w.calm || w.r.IntN(30) > 0); m.reads++ {
		w.memberReads(m, m.reads, w.log[m.reads])
	}
	m.calls = slices.DeleteFunc(m.calls, func(c attempt) bool {
		if w.now < c.ends && (m.open[c.Call] || w.now < c.deaf) {
			return false
		}
		w.end(m, m.Returned(c.Begin, c.ok && m.open[c.Call], w.at()))
		return true
	})
	do := m.Step(true, func(at offer.Place) bool { return m.mine[at.Local] }, w.at())
	w.end(m, do.End)
	for _, b := range do.Begin {
		m.open[b.Call] = true
		c := attempt{Begin: b, ends: w.now + time.Duration(w.r.ExpFloat64()*float64(300*time.Millisecond)), ok: w.r.IntN(10) > 0}
		switch w.r.IntN(20) {
		case 0:
			c.ends = w.now + time.Hour // it returns when its context ends
		case 1:
			c.deaf = w.now + testFor + time.Second
		}
		m.calls = append(m.calls, c)
	}
	require.LessOrEqual(w.t, len(m.calls), mostCalls, "more calls than it announced")
	for _, s := range do.Say {
		w.send(entry{from: m.name, to: s.To.Process, state: &s.State, release: -1})
	}
}

// end notes which contexts end.
func (w *world) end(m *member, ended []End) {
	for _, e := range ended {
		require.True(w.t, m.open[e.Call], "a context ends twice")
		delete(m.open, e.Call)
		if e.Why == Failed || e.Why == Late {
			w.failures++
		}
	}
}

func (w *world) memberReads(m *member, offset int, e entry) {
	switch {
	case e.offers != nil && e.to == m.name:
		w.end(m, m.Offered(offer.From{Process: e.from}, 0, int64(offset), e.offers, true, func(local int32) bool { return m.holds[local] }, w.at()))
	case e.claim:
		if e.from == m.name {
			delete(m.mine, e.release)
		}
		w.end(m, m.Held(offer.Place{Local: e.release}, e.from, e.from == m.name))
	case e.release >= 0:
		m.holds[e.release] = false
		if e.to != m.name {
			return
		}
		prepared := m.by[offer.Place{Local: e.release}]
		require.True(w.t, prepared != nil && prepared.stage == ready, "a role that was said to be ready arrives cold")
		w.warm++
		m.mine[e.release] = true
		w.send(entry{from: m.name, release: e.release, claim: true})
	}
}

// If a holder hands a role over because the member is ready, the member is still ready when the role arrives, even if
// records are lost, late or out of order. No member prepares more at once than it announced. In the end no member keeps
// a role prepared that nobody offers.
func TestSuccessorStaysPrepared(t *testing.T) {
	warm, calledOff, failures := 0, 0, 0
	for seed := range uint64(60) {
		w := newWorld(t, seed)
		for w.now < 45*time.Second {
			w.step()
		}
		for w.calm = true; w.now < 80*time.Second; {
			w.step()
		}
		require.Empty(t, w.gives, "a hand-over does not end")
		require.True(t, w.offers.IsIdle(), "something is still offered")
		for _, m := range w.members {
			require.Empty(t, m.open, "something is prepared for nobody")
			require.Empty(t, m.by, "something is prepared for nobody")
			require.Empty(t, m.calls)
		}
		warm, calledOff, failures = warm+w.warm, calledOff+w.calledOff, failures+w.failures
	}
	require.Positive(t, min(warm, calledOff, failures))
	t.Logf("%d roles arrived warm, %d hand-overs were called off, %d preparations failed", warm, calledOff, failures)
}
