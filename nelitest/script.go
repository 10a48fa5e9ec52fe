package nelitest

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli"
)

// Script is a member that leads on command, for tests of your own barrier and pulse loop. It needs no Broker and
// elects nobody: use a Broker to test what happens between members.
//
// Acquire, Revoke, Fence and Fail are the commands. The next Pulse delivers what they have caused, in order, as
// [neli.Neli.Pulse] does. Let your code use an interface of its own, which *Script and *neli.Neli both
// implement:
//
//	type leader interface {
//		Pulse(timeout time.Duration) (bool, error)
//		IsLeaderOf(role int) bool
//	}
//
// A function for Lead needs no Script: call it with a context that the test ends by [neli.ErrRevoked] or
// [neli.ErrFenced]. The methods may be called concurrently, and in a bubble of testing/synctest all waits are durably
// blocking.
type Script struct {
	barrier neli.Barrier
	turn    chan struct{} // holds a value while Pulse or Close is at work
	news    chan struct{} // has a value when something is queued

	mu    sync.Mutex
	queue []func()
	led   map[int]held // by role
	token int64
	end   error // what Pulse returns from now on
}

// elected is the reason of each LeaderAcquired. It has no exported name.
const elected = neli.ReasonUnassigned - 1

// held is a role that a Script leads.
type held struct {
	token    int64
	deadline time.Time // of LeaderRevoked; zero before that
}

// NewScript returns a Script that leads nothing. barrier may be nil.
func NewScript(barrier neli.Barrier) *Script {
	if barrier == nil {
		barrier = func(neli.Event) {}
	}
	return &Script{barrier: barrier, turn: make(chan struct{}, 1), news: make(chan struct{}, 1), led: map[int]held{}}
}

// Acquire makes the Script the leader of roles that it does not lead, with a token higher than any before. The
// barrier gets LeaderAcquired. IsLeader is true from that call on, not sooner.
func (s *Script) Acquire(roles ...int) {
	s.command(func() {
		s.mu.Lock()
		s.token++
		h := held{token: s.token}
		fresh := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(roles))), func(role int) bool {
			_, led := s.led[role]
			return led
		})
		for _, role := range fresh {
			s.led[role] = h
		}
		s.mu.Unlock()
		if len(fresh) > 0 {
			s.barrier(neli.LeaderAcquired{Change: neli.Change{Terms: []neli.Term{{Roles: fresh, Token: h.token}}, Reason: elected}})
		}
	})
}

// Revoke takes roles away in good order: the barrier gets LeaderRevoked, whose Deadline is the time of that call plus
// within. The Script leads these roles until the barrier returns or the Deadline has passed. If roles is empty, Revoke
// takes all that the Script leads by then.
func (s *Script) Revoke(within time.Duration, roles ...int) {
	s.command(func() { s.revoke(neli.ReasonRebalanced, within, roles) })
}

func (s *Script) revoke(reason neli.Reason, within time.Duration, roles []int) {
	deadline := time.Now().Add(within)
	s.mu.Lock()
	terms := s.terms(roles)
	for _, t := range terms {
		for _, role := range t.Roles {
			s.led[role] = held{t.Token, deadline}
		}
	}
	s.mu.Unlock()
	if len(terms) == 0 {
		return
	}
	s.barrier(neli.LeaderRevoked{Change: neli.Change{Terms: terms, Reason: reason}, Deadline: deadline})
	s.drop(terms)
}

// Fence ends the leadership of roles at once: IsLeaderOf is false when Fence returns, as after a suspension, and the
// barrier gets LeaderFenced later, but not for roles for which it got LeaderRevoked. If roles is empty, Fence ends all
// that the Script leads now.
func (s *Script) Fence(roles ...int) { s.fence(neli.ReasonLapsed, roles) }

func (s *Script) fence(reason neli.Reason, roles []int) {
	s.mu.Lock()
	terms := s.terms(roles)
	maps.DeleteFunc(s.led, func(role int, _ held) bool { return len(roles) == 0 || slices.Contains(roles, role) })
	s.mu.Unlock()
	if len(terms) == 0 {
		return // nothing is lost that the barrier does not know
	}
	s.command(func() { s.barrier(neli.LeaderFenced{Change: neli.Change{Terms: terms, Reason: reason}}) })
}

// Fail ends the Script, as a fatal error ends a Neli: the barrier gets LeaderFenced for what was led, and the next
// Pulse and all later ones return err.
func (s *Script) Fail(err error) {
	s.fence(neli.ReasonFatal, nil)
	s.command(func() { s.finish(err) })
}

// Pulse delivers what the commands have caused, and returns whether the Script leads. If it leads nothing, Pulse
// waits for commands until the timeout. It also waits, at most that long, while another goroutine is in Pulse.
func (s *Script) Pulse(timeout time.Duration) (isLeader bool, err error) {
	over := time.NewTimer(timeout)
	defer over.Stop()
	select {
	case s.turn <- struct{}{}: // even if the time is up
	default:
		select {
		case s.turn <- struct{}{}:
		case <-over.C:
			return s.state()
		}
	}
	defer func() { <-s.turn }()
	for {
		s.deliver()
		if isLeader, err := s.state(); isLeader || err != nil {
			return isLeader, err
		}
		select {
		case <-s.news:
		case <-over.C:
			return false, nil
		}
	}
}

// state returns what Pulse would return now.
func (s *Script) state() (isLeader bool, err error) {
	s.mu.Lock()
	err = s.end
	s.mu.Unlock()
	return err == nil && s.IsLeader(), err
}

// IsLeader reports whether the Script leads a role.
func (s *Script) IsLeader() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(slices.Collect(maps.Values(s.led)), held.valid)
}

// IsLeaderOf reports whether the Script leads a role.
func (s *Script) IsLeaderOf(role int) bool {
	_, ok := s.Token(role)
	return ok
}

// Token returns the token of a role; ok is false unless the Script leads it.
func (s *Script) Token(role int) (token int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, led := s.led[role]
	if !led || !h.valid() {
		return 0, false
	}
	return h.token, true
}

// Close waits for a Pulse in progress, and gives up all roles: the barrier gets LeaderRevoked, with a Deadline in ten
// seconds. Pulse returns [neli.ErrClosed] from then on. Close returns nil, and must not be called from the barrier.
func (s *Script) Close() error {
	s.command(func() {
		s.revoke(neli.ReasonClosing, 10*time.Second, nil)
		s.finish(neli.ErrClosed)
	})
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.deliver()
	return nil
}

// valid reports whether the role is still led.
func (h held) valid() bool { return h.deadline.IsZero() || time.Now().Before(h.deadline) }

// command queues what the next Pulse is to do, and wakes a Pulse that waits.
func (s *Script) command(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return
	}
	s.queue = append(s.queue, do)
	select {
	case s.news <- struct{}{}:
	default: // Pulse is about to look already
	}
}

// deliver carries out what is queued. The caller has the turn.
func (s *Script) deliver() {
	for {
		s.mu.Lock()
		if len(s.queue) == 0 || s.end != nil {
			s.mu.Unlock()
			return
		}
		do := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		do()
	}
}

func (s *Script) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = err
}

// terms returns the terms of the given roles, or of all if none is given, that are led and not being revoked,
// ascending by token. The caller holds the lock.
func (s *Script) terms(roles []int) (terms []neli.Term) {
	byToken := map[int64][]int{}
	for _, role := range slices.Sorted(maps.Keys(s.led)) {
		h := s.led[role]
		if h.deadline.IsZero() && (len(roles) == 0 || slices.Contains(roles, role)) {
			byToken[h.token] = append(byToken[h.token], role)
		}
	}
	for _, token := range slices.Sorted(maps.Keys(byToken)) {
		terms = append(terms, neli.Term{Roles: byToken[token], Token: token})
	}
	return terms
}

func (s *Script) drop(terms []neli.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range terms {
		for _, role := range t.Roles {
			delete(s.led, role)
		}
	}
}
