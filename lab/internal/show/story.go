//go:build unix

package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/goneli/neli/lab/nursery"
	"github.com/goneli/neli/lab/witness"
)

// Story is a sequence of events. After an error its methods do nothing, and Tell returns the error.
type Story struct {
	Ctx       context.Context
	Args      []string   // arguments of members that start from now on
	Members   []*Process // in the order of their start
	processes *nursery.Nursery
	pause     time.Duration // time to read
	steps     []step
	err       error
	screen
}

// step is something that happened, with its time.
type step struct {
	what string
	at   time.Duration
	bar  string // the name of its bar; "": none
}

// patience is the longest wait for anything.
const patience = 40 * time.Second

// Tell runs the parts, with a pause after each.
func (s *Story) Tell(parts ...func()) error {
	for _, part := range parts {
		if s.err == nil {
			part()
		}
		s.Rest(s.pause)
	}
	return s.err
}

// Do calls what, unless an earlier call has failed, and keeps its error for Tell.
func (s *Story) Do(what func() error) {
	if s.err == nil {
		s.err = what()
	}
}

// Await shows who leads until ok returns true.
func (s *Story) Await(what string, ok func() bool) { s.await(what, patience, ok) }

func (s *Story) await(what string, limit time.Duration, ok func() bool) {
	s.Do(func() error {
		ctx, cancel := context.WithTimeoutCause(s.Ctx, limit, fmt.Errorf("%s: not within %v", what, limit))
		defer cancel()
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for !ok() {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-ticker.C:
				s.show(s.leaders())
			}
		}
		return nil
	})
}

// Rest waits for d, so that the output can be read.
func (s *Story) Rest(d time.Duration) {
	until := witness.Now() + d
	s.await("rest", d+patience, func() bool { return witness.Now() >= until })
}

// Announce prints what comes next, and leaves time to read it.
func (s *Story) Announce(format string, args ...any) {
	s.Say(format, args...)
	s.Rest(s.pause)
}

// Say prints one line of the story.
func (s *Story) Say(format string, args ...any) {
	s.Do(func() error {
		s.say(format, args...)
		return nil
	})
}

// Mark notes that something happens now.
func (s *Story) Mark(what string) {
	s.Say("→ %s", what)
	s.steps = append(s.steps, step{what: what, at: witness.Now()})
}

// Bar gives the last step a bar, which shows at the end how long it took beside other steps with a bar.
func (s *Story) Bar(name string) { s.steps[len(s.steps)-1].bar = name }

// Launch starts members.
func (s *Story) Launch(names ...string) {
	for _, name := range names {
		s.Do(func() error {
			p, err := start(s.processes, name, s.Args)
			if err == nil {
				s.Members = append(s.Members, p)
			}
			return err
		})
	}
}

// Settle waits until running members lead all roles. It does not count the excepted members.
func (s *Story) Settle(what string, except ...*Process) {
	s.Await(what, func() bool {
		led, shares := 0, s.Shares()
		for _, p := range s.Running() {
			if !slices.Contains(except, p) {
				led += shares[p.Name]
			}
		}
		return led == Roles
	})
}

// Kill kills a member, and waits for its successors.
func (s *Story) Kill(victim *Process) {
	s.Do(func() error { victim.Kill(); return nil })
	s.Settle("successors of " + victim.Name)
}

// Suspend stops a member while it leads, until it has successors. Then it resumes the member, and waits until the
// member finds that it leads nothing.
func (s *Story) Suspend(victim *Process) {
	s.Mark(victim.Name + " suspended")
	s.Do(func() error { return victim.Signal(syscall.SIGSTOP) })
	s.Settle("successors of "+victim.Name, victim)
	s.Rest(s.pause)
	s.Say("%s wakes (SIGCONT). Its check is its own clock against its last evidence, so it knows at once.", victim.Name)
	s.Mark(victim.Name + " woken")
	woken := witness.Now()
	s.Do(func() error { return victim.Signal(syscall.SIGCONT) })
	var found time.Duration
	s.Await(victim.Name+"'s word that it leads nothing", func() (ok bool) {
		found, ok = idleSince(victim, woken)
		return ok
	})
	s.Say("%s found that it leads nothing, %v after waking. It is a candidate again.", victim.Name, rough(found-woken))
}

// idleSince returns when a member first found, at t or later, that it leads nothing.
func idleSince(p *Process, t time.Duration) (found time.Duration, ok bool) {
	for role := range Roles {
		r, ok := p.Samples.Latest(0, role)
		if !ok || r.Answer != witness.No || r.First.Before < t { // a suspension ends a run
			return 0, false
		}
		found = max(found, r.First.After)
	}
	return found, true
}

// Leave closes a member cleanly, and waits for its successors.
func (s *Story) Leave(leaver *Process) {
	s.Mark(leaver.Name + " closed")
	s.close(leaver)
	s.Settle("successors of " + leaver.Name)
}

// End closes all members.
func (s *Story) End() {
	s.Announce("That is all: the members are closed.")
	s.close(s.Running()...)
}

// close closes members cleanly, and waits until they have ended.
func (s *Story) close(leavers ...*Process) {
	for _, p := range leavers {
		s.Do(func() error { return p.Say("close") })
	}
	for _, p := range leavers {
		s.Await("the end of "+p.Name, func() bool { return !p.Running() })
	}
	s.Do(func() (err error) {
		for _, p := range leavers {
			if end := p.State(); end != "exit status 0" {
				err = errors.Join(err, fmt.Errorf("%s: %s", p.Name, end))
			}
		}
		return err
	})
}

// KillAll kills all members.
func (s *Story) KillAll() { s.processes.Close() }

// Running returns the members that have not ended.
func (s *Story) Running() []*Process {
	return slices.DeleteFunc(slices.Clone(s.Members), func(p *Process) bool { return !p.Running() })
}

// Busiest returns the running member that leads the most roles.
func (s *Story) Busiest() *Process {
	shares := s.Shares()
	return slices.MaxFunc(s.Running(), func(a, b *Process) int { return cmp.Compare(shares[a.Name], shares[b.Name]) })
}
