package offer

import (
	"cmp"
	"slices"
	"time"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

const (
	// gather is the least time between offers to a member for a shard: what changes together is said together.
	gather = 5 * time.Millisecond
	// rest is how long a member is not offered a role again that it failed to prepare.
	rest = 30 * time.Second
	// farewells is how often an offer without roles is repeated.
	farewells = 2
)

// Place is a role of a shard, with its number there.
type Place struct {
	Shard int
	Local int32
}

// From is a process that holds roles of a shard, or that is offered some.
type From struct {
	Process string
	Shard   int
}

// Compare orders by process, then by shard.
func (f From) Compare(g From) int {
	return cmp.Or(cmp.Compare(f.Process, g.Process), cmp.Compare(f.Shard, g.Shard))
}

// stage is how far a member is with a role, as it says.
type stage int8

const (
	queued stage = iota
	running
	ready
	failed
)

// Window is how many roles a member is offered at a time: enough that it always has something to begin
// with, and few enough that a state stays short.
func Window(p lease.Prepares) int { return 4 * p.Most }

// Offers is what this process offers to others.
type Offers struct {
	wait   time.Duration // how long an answer is awaited
	t      time.Duration
	n      uint64 // of the newest offer; it never begins anew, else members would take all offers for late ones
	to     map[string]*addressee
	fail   map[failure]clock.Mono // until when a member rests from a role
	idle   map[Place]clock.Mono   // until when any member rests from a role
	Counts Given
}

// Given counts roles that this process gave up, by how their successors got them, and those that it kept.
type Given struct {
	Warm      uint64 // prepared
	Late      uint64 // unprepared, since the time for that was over
	Failed    uint64 // unprepared, since no member there prepared it
	Young     uint64 // unprepared, since nothing is prepared anywhere yet
	Unable    uint64 // unprepared, since its successor prepares nothing, unlike this process
	CalledOff uint64 // kept, since its successor was not ready in time, or it was wanted again
}

type failure struct {
	process string
	at      Place
}

// addressee is a member that prepares roles.
type addressee struct {
	is     lease.Prepares
	shards map[int]*list
}

// list is what is offered to a member in one shard.
type list struct {
	named    map[int32]*hand
	waiting  byrole.Map[struct{}] // for room in the window
	added    bool                 // more wait than at the last look for room
	dirty    bool                 // a role was named, or called off
	sent     clock.Mono
	repeated int        // how often it was said that nothing is offered
	asked    clock.Mono // when the first offer without an answer was sent; 0: there is none
	state    uint64     // the number of the newest state
}

// hand is a role that is being handed over.
type hand struct {
	first    uint64 // the first offer that named it; 0: none was sent yet
	answered bool
	stage    stage
	ran      clock.Mono // when a state first said that it is begun with; 0: none has
	asked    bool       // the application was asked to finish
}

// NewOffers returns Offers of a process with a lease of t that waits for an answer for some time.
func NewOffers(wait, t time.Duration) *Offers {
	return &Offers{wait: wait, t: t, to: map[string]*addressee{}, fail: map[failure]clock.Mono{}, idle: map[Place]clock.Mono{}}
}

// IsIdle reports whether nothing is offered, nor was lately.
func (os *Offers) IsIdle() bool { return len(os.to) == 0 }

// Name adds a role to what is offered to a member that announced how it prepares.
func (os *Offers) Name(process string, is lease.Prepares, at Place) {
	a := os.to[process]
	if a == nil {
		a = &addressee{shards: map[int]*list{}}
		os.to[process] = a
	}
	a.is = is
	l := a.shards[at.Shard]
	if l == nil {
		l = &list{named: map[int32]*hand{}}
		a.shards[at.Shard] = l
	}
	if l.named[at.Local] == nil {
		l.waiting.Set(at.Local, struct{}{})
		l.added = true
	}
	l.repeated = 0
}

// CallOff takes back the offer of a role.
func (os *Offers) CallOff(process string, at Place) { os.remove(process, at, true) }

// Given notes that the Release of a role was read back. The member reads it, too, so that no offer need say it.
func (os *Offers) Given(process string, at Place) { os.remove(process, at, false) }

func (os *Offers) remove(process string, at Place, say bool) {
	l := os.list(process, at.Shard)
	if l == nil {
		return
	}
	if l.named[at.Local] != nil {
		l.dirty = l.dirty || say
	}
	delete(l.named, at.Local)
	l.waiting.Remove(at.Local)
	if len(l.named)+l.waiting.Len() == 0 {
		l.asked = 0
	}
}

// Asked notes that the application was asked to finish a role: its successor is decided. A role that was not
// named yet need not be prepared any more.
func (os *Offers) Asked(process string, at Place) {
	if h := os.hand(process, at); h != nil {
		h.asked = true
		return
	}
	os.remove(process, at, false)
}

// Failed notes that a member failed a role, which is not offered to it again for a while. Other roles may be: one that
// fails must not stop others.
func (os *Offers) Failed(process string, at Place, now clock.Instant) {
	for f, until := range os.fail {
		if now.Mono >= until {
			delete(os.fail, f)
		}
	}
	for place, until := range os.idle {
		if now.Mono >= until {
			delete(os.idle, place)
		}
	}
	os.fail[failure{process, at}], os.idle[at] = now.Mono.Add(rest), now.Mono.Add(rest)
}

// RestsAnywhere reports whether any member rests from a role.
func (os *Offers) RestsAnywhere(at Place, now clock.Instant) bool { return now.Mono < os.idle[at] }

// AnyRests reports whether any member rests from any role.
func (os *Offers) AnyRests(now clock.Instant) bool {
	for _, until := range os.idle {
		if now.Mono < until {
			return true
		}
	}
	return false
}

// Rests reports whether a role is not to be offered to a member yet, since that has failed it.
func (os *Offers) Rests(process string, at Place, now clock.Instant) bool {
	return now.Mono < os.fail[failure{process, at}]
}

// Answered takes a member's state, unless a newer one was read. A state says nothing of a role that was not in
// the offer that it answers.
func (os *Offers) Answered(by From, s *lease.Prepared, now clock.Instant) {
	l := os.list(by.Process, by.Shard)
	if l == nil || s.N <= l.state {
		return
	}
	l.state, l.asked = s.N, 0
	is := map[int32]stage{}
	for i, roles := range [][]int32{s.Running, s.Ready, s.Failed} {
		for _, local := range roles {
			is[local] = running + stage(i)
		}
	}
	for local, h := range l.named {
		if h.first == 0 || s.Of < h.first || h.asked {
			continue
		}
		h.answered, h.stage = true, is[local]
		if h.stage != queued && h.ran == 0 {
			h.ran = now.Mono
		}
	}
}

// Offer is an offer to be sent.
type Offer struct {
	To    From
	Offer lease.Offer
}

// Review removes roles that are not offered any more. of says which still are, and which of the others were
// given to the member.
func (os *Offers) Review(of func(to From, local int32) (offered, given bool)) {
	for process, a := range os.to {
		for shard, l := range a.shards {
			for local := range l.named {
				if offered, given := of(From{process, shard}, local); !offered {
					os.remove(process, Place{shard, local}, !given)
				}
			}
		}
	}
}

// Named returns, ascending, the named roles of a shard that the application was not asked to finish.
func (os *Offers) Named(process string, shard int) (roles []int32) {
	if l := os.list(process, shard); l != nil {
		for local, h := range l.named {
			if !h.asked {
				roles = append(roles, local)
			}
		}
	}
	slices.Sort(roles)
	return roles
}

// Waiting is the Standing of roles that wait to be named to a member.
func (os *Offers) Waiting(process string, shard int, now clock.Instant) (s Standing) {
	if l := os.list(process, shard); l != nil {
		s.Answered, s.Silent = l.state != 0, l.silent(os.wait, now)
	}
	return s
}

// Silent reports whether a member has not answered an offer in time.
func (os *Offers) Silent(process string, shard int, now clock.Instant) bool {
	l := os.list(process, shard)
	return l != nil && l.silent(os.wait, now)
}

func (l *list) silent(wait time.Duration, now clock.Instant) bool {
	return l.asked != 0 && now.Mono.Sub(l.asked) >= wait
}

// Sends returns the offers that are due. urgent says that this process could not keep the roles.
func (os *Offers) Sends(urgent bool, now clock.Instant) (out []Offer) {
	for process, a := range os.to {
		a.fill()
		for shard, l := range a.shards {
			if now.Mono >= l.at(os.t) {
				out = append(out, Offer{To: From{process, shard}, Offer: lease.Offer{Urgent: urgent}})
			}
		}
	}
	slices.SortFunc(out, func(a, b Offer) int { return a.To.Compare(b.To) })
	for i := range out {
		os.n++
		out[i].Offer.N = os.n
		out[i].Offer.Roles = os.list(out[i].To.Process, out[i].To.Shard).send(os.n, now)
	}
	os.tidy(now)
	return out
}

// fill names waiting roles as far as there is room, the lowest first. It does so when more roles wait, when
// another change is to be said anyway, or when the member may soon have nothing to begin with.
func (a *addressee) fill() {
	named, open, changed := 0, 0, false
	for _, l := range a.shards {
		named += len(l.named)
		changed = changed || l.dirty || l.added
		l.added = false
		for _, h := range l.named {
			if h.stage < ready && !h.asked {
				open++
			}
		}
	}
	room := Window(a.is) - named
	if room <= 0 || !changed && open >= 2*a.is.Most {
		return
	}
	for _, l := range a.sorted() {
		var next []int32
		for local := range l.waiting.All() {
			if len(next) == room {
				break
			}
			next = append(next, local)
		}
		for _, local := range next {
			l.waiting.Remove(local)
			l.named[local] = &hand{}
			l.dirty = true
		}
		room -= len(next)
	}
}

func (a *addressee) sorted() (out []*list) {
	shards := make([]int, 0, len(a.shards))
	for shard := range a.shards {
		shards = append(shards, shard)
	}
	slices.Sort(shards)
	for _, shard := range shards {
		out = append(out, a.shards[shard])
	}
	return out
}

// at is when the list is sent next.
func (l *list) at(t time.Duration) clock.Mono {
	switch {
	case l.dirty:
		return l.sent.Add(gather)
	case len(l.named) > 0 || l.repeated < farewells:
		return l.sent.Add(t / 4)
	}
	return clock.Never
}

// send notes that an offer is sent, and returns its roles.
func (l *list) send(n uint64, now clock.Instant) (roles []int32) {
	if len(l.named) == 0 && !l.dirty {
		l.repeated++
	}
	l.sent, l.dirty = now.Mono, false
	for local, h := range l.named {
		roles = append(roles, local)
		if h.first == 0 {
			h.first = n
		}
	}
	if l.asked == 0 && len(roles) > 0 {
		l.asked = now.Mono
	}
	slices.Sort(roles)
	return roles
}

// tidy forgets lists that were said to be empty often enough.
func (os *Offers) tidy(now clock.Instant) {
	for process, a := range os.to {
		for shard, l := range a.shards {
			if len(l.named)+l.waiting.Len() == 0 && !l.dirty && l.repeated >= farewells && now.Mono >= l.sent.Add(os.t) {
				delete(a.shards, shard)
			}
		}
		if len(a.shards) == 0 {
			delete(os.to, process)
		}
	}
}

// Due is when time alone has an effect on what is sent.
func (os *Offers) Due() clock.Mono {
	next := clock.Mono(clock.Never)
	for _, a := range os.to {
		for _, l := range a.shards {
			next = min(next, l.at(os.t))
		}
	}
	return next
}

func (os *Offers) list(process string, shard int) *list {
	if a := os.to[process]; a != nil {
		return a.shards[shard]
	}
	return nil
}

func (os *Offers) hand(process string, at Place) *hand {
	if l := os.list(process, at.Shard); l != nil {
		return l.named[at.Local]
	}
	return nil
}
