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
)

// Story is a sequence of events. Its members are in the order of their start.
type Story struct {
	Ctx     context.Context
	Watch   *Watch
	Pause   time.Duration              // time to read
	Args    func(name string) []string // arguments of a member's process
	Members []*Process
	Steps   []Step
}

// Tell runs the parts, with a pause after each.
func (s *Story) Tell(parts ...func() error) error {
	for _, part := range parts {
		if err := part(); err != nil {
			return err
		}
		if err := s.Rest(s.Pause); err != nil {
			return err
		}
	}
	return nil
}

// Launch starts members.
func (s *Story) Launch(names ...string) error {
	for _, name := range names {
		p, err := Launch(name, s.Args(name), s.Watch.Heard)
		if err != nil {
			return err
		}
		s.Members = append(s.Members, p)
	}
	return nil
}

// Announce prints what comes next, and leaves time to read it.
func (s *Story) Announce(format string, args ...any) error {
	s.Watch.Say(format, args...)
	return s.Rest(s.Pause)
}

// Rest waits for d, so that the output can be read.
func (s *Story) Rest(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.Ctx.Done():
		return context.Cause(s.Ctx)
	case <-timer.C:
		return nil
	}
}

// Mark notes that something happens now.
func (s *Story) Mark(what string) {
	s.Watch.Say("→ %s", what)
	s.Steps = append(s.Steps, Step{what, Now()})
}

// Settle waits until all roles are led by running members, the excepted ones not counted.
func (s *Story) Settle(what string, except ...*Process) error {
	return s.Watch.Await(s.Ctx, what, func() bool { return s.Watch.Lanes().Shared(nil, s.Names(except...)) })
}

// Suspend stops a member as it leads, for longer than its lease, and waits for successors.
func (s *Story) Suspend(victim *Process) error {
	s.Mark(victim.Name + " suspended")
	if err := victim.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("suspending %s: %w", victim.Name, err)
	}
	if err := s.Settle("successors of "+victim.Name, victim); err != nil {
		return err
	}
	return s.Rest(s.Pause)
}

// Wake resumes a suspended member, and waits until it reports that it leads nothing.
func (s *Story) Wake(p *Process) error {
	s.Watch.Say("%s wakes (SIGCONT). Its check is its own clock against its last evidence, so it knows at once.", p.Name)
	s.Mark(p.Name + " woken")
	woken := Now()
	if err := p.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("waking %s: %w", p.Name, err)
	}
	var found time.Duration
	if err := s.Watch.Await(s.Ctx, p.Name+"'s word that it leads nothing", func() (ok bool) {
		found, ok = s.Watch.IdleSince(p.Name, woken)
		return ok
	}); err != nil {
		return err
	}
	s.Watch.Say("%s found that it leads nothing, %v after waking. It is a candidate again.", p.Name, Rough(found-woken))
	return nil
}

// Leave closes a member cleanly, and waits until it has ended.
func (s *Story) Leave(leaver *Process) error {
	s.Mark(leaver.Name + " closed")
	if err := leaver.Tell("close"); err != nil {
		return fmt.Errorf("closing %s: %w", leaver.Name, err)
	}
	if err := s.Watch.Await(s.Ctx, "the end of "+leaver.Name, func() bool { return !leaver.Running() }); err != nil {
		return err
	}
	if leaver.Err != nil {
		return fmt.Errorf("%s: %w", leaver.Name, leaver.Err)
	}
	return nil
}

// End closes all members, and waits until they have ended.
func (s *Story) End() error {
	if err := s.Announce("That is all: the members are closed."); err != nil {
		return err
	}
	closing := s.Running()
	for _, p := range closing {
		if err := p.Tell("close"); err != nil {
			return fmt.Errorf("closing %s: %w", p.Name, err)
		}
	}
	err := s.Watch.Await(s.Ctx, "the end of all members", func() bool { return len(s.Running()) == 0 })
	if err != nil {
		return err
	}
	for _, p := range closing {
		if p.Err != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", p.Name, p.Err))
		}
	}
	return err
}

// Names returns the names of the running members, without the excepted ones.
func (s *Story) Names(except ...*Process) (names []string) {
	for _, p := range s.Running() {
		if !slices.Contains(except, p) {
			names = append(names, p.Name)
		}
	}
	return names
}

// Running returns the members that have not ended.
func (s *Story) Running() []*Process {
	return slices.DeleteFunc(slices.Clone(s.Members), func(p *Process) bool { return !p.Running() })
}

// Busiest returns the running member that leads the most roles.
func (s *Story) Busiest() *Process {
	l := s.Watch.Lanes()
	return slices.MaxFunc(s.Running(), func(a, b *Process) int {
		return cmp.Compare(len(l.Share(a.Name)), len(l.Share(b.Name)))
	})
}

// KillAll kills all members.
func (s *Story) KillAll() {
	for _, p := range s.Members {
		p.Kill()
	}
}
