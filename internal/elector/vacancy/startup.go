package vacancy

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// Startup is the wait of a process's first claims for others that start with it.
type Startup struct {
	t       time.Duration
	until   clock.Mono
	times   int  // how often the wait has begun
	waiting bool // when it is over, all vacant roles are reconsidered
	awaits  bool // until then an own record is awaited, whose return begins the wait anew
}

func NewStartup(t time.Duration) Startup { return Startup{t: t} }

// StartupWait is how long the wait lasts after each newcomer.
func StartupWait(t time.Duration) time.Duration { return min(StartupWaitMax, clock.StartupWait(t)) }

// Newcomer makes the first claims wait for another process that starts, too.
func (s *Startup) Newcomer(now clock.Instant) {
	if s.times < 3 && (s.times == 0 || now.Mono < s.until) {
		s.times++
		s.waiting = true
		s.until = max(s.until, now.Mono.Add(StartupWait(s.t)))
	}
}

// Begin begins the wait with the first own Hello.
func (s *Startup) Begin(now clock.Instant) {
	if s.times == 0 {
		s.Newcomer(now)
	}
}

// Again begins the wait again, because others may start or come back now.
func (s *Startup) Again(now clock.Instant) {
	s.times = 0
	s.Newcomer(now)
}

// Anew begins the wait anew. It began with the own Hello, but if reading the history takes longer,
// the Hellos of others that start too are read only after that.
func (s *Startup) Anew(now clock.Instant) {
	if s.awaits {
		s.awaits, s.until = false, 0
	}
	s.Again(now)
}

// Await makes the wait begin anew when an own record comes back; without one it ends after T/2. By
// then the Hellos of others that were said before it are read.
func (s *Startup) Await(now clock.Instant) {
	s.awaits, s.until = true, max(s.until, now.Mono.Add(clock.Patience(s.t)))
}

// OwnBack handles an own record that has come back, in case one is awaited.
func (s *Startup) OwnBack(now clock.Instant) {
	if s.awaits {
		s.Anew(now)
	}
}

// Given ends the wait: a holder is already giving roles to this process, and knows which members exist.
func (s *Startup) Given(now clock.Instant) { s.until = min(s.until, now.Mono) }

// Over reports, once, that the wait is over.
func (s *Startup) Over(now clock.Instant) bool {
	over := s.waiting && now.Mono >= s.until
	s.waiting = s.waiting && !over
	return over
}

// End is when the wait of the first claims ends. A single role needs no wait: there is nothing to share out.
func (s *Startup) End(roles int, nominated bool) clock.Mono {
	if nominated || roles < 2 {
		return 0
	}
	return s.until
}

// StartupWaitMax limits how long a starting process waits for Hellos before it claims its share of
// several roles, after its own Hello and each of the first two newcomers.
const StartupWaitMax = 100 * time.Millisecond
