//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// story is the run of events. Its members are in the order of their start.
type story struct {
	ctx       context.Context
	watch     *watch
	pause     time.Duration // for the reader
	bootstrap string
	members   []*process
	steps     []step
}

func (s *story) tell() error {
	for _, part := range []func() error{s.begin, s.kill, s.suspend, s.leave, s.join, s.end} {
		if err := part(); err != nil {
			return err
		}
		if err := s.rest(s.pause); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) begin() error {
	s.watch.say("An embedded broker listens on %s. Three processes start: anna, boris and clara.\n"+
		"         They contend for %d roles. Whoever claims a role in the log leads it, for T = %v after its last\n"+
		"         beat. The number is the fencing token.",
		s.bootstrap, roles, timeout)
	return errors.Join(s.launch("anna", "boris", "clara"), s.settle("first leaders"))
}

func (s *story) kill() error {
	victim := s.busiest()
	if err := s.announce("%s is about to be killed (SIGKILL). It can tell nobody: its leases must run out (T = %v),\n"+
		"         and then the others claim its roles.", victim.name, timeout); err != nil {
		return err
	}
	s.mark(victim.name + " killed")
	victim.kill()
	return s.settle("successors of " + victim.name)
}

func (s *story) suspend() error {
	victim := s.busiest()
	if err := s.announce("%s is about to be suspended (SIGSTOP) in the midst of leading, for longer than T.\n"+
		"         The dangerous case: when it wakes, it does not know that time has passed.", victim.name); err != nil {
		return err
	}
	s.mark(victim.name + " suspended")
	if err := victim.signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("suspending %s: %w", victim.name, err)
	}
	if err := s.settleWithout(victim, "successors of "+victim.name); err != nil {
		return err
	}
	if err := s.rest(s.pause); err != nil {
		return err
	}
	return s.wake(victim)
}

func (s *story) wake(p *process) error {
	s.watch.say("%s wakes (SIGCONT). Its check is its own clock against its last evidence, so it knows at once.", p.name)
	s.mark(p.name + " woken")
	woken := now()
	if err := p.signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("waking %s: %w", p.name, err)
	}
	var found time.Duration
	if err := s.watch.await(s.ctx, p.name+"'s word that it leads nothing", func() (ok bool) {
		found, ok = s.watch.idleSince(p.name, woken)
		return ok
	}); err != nil {
		return err
	}
	s.watch.say("%s found that it leads nothing, %v after waking. It is a candidate again.", p.name, rough(found-woken))
	return nil
}

func (s *story) leave() error {
	leaver := s.busiest()
	if err := s.announce("%s is about to be closed in good order. It lets its work end, and releases each role in favour\n"+
		"         of another member: nobody has to wait for a timeout.", leaver.name); err != nil {
		return err
	}
	s.mark(leaver.name + " closed")
	if err := leaver.close(); err != nil {
		return fmt.Errorf("closing %s: %w", leaver.name, err)
	}
	if err := s.watch.await(s.ctx, "the end of "+leaver.name, func() bool { return !leaver.running() }); err != nil {
		return err
	}
	if leaver.err != nil {
		return fmt.Errorf("%s: %w", leaver.name, leaver.err)
	}
	return s.settle("successors of " + leaver.name)
}

func (s *story) join() error {
	if err := s.announce("A new process, dora, is about to start. Once it has been there for %v it gets its share,\n"+
		"         one role at a time; what does not move is not disturbed and keeps its token.", steady); err != nil {
		return err
	}
	s.mark("dora started")
	if err := s.launch("dora"); err != nil {
		return err
	}
	return s.watch.await(s.ctx, "share of dora", func() bool { return s.watch.lanes().shared([]string{"dora"}, s.names(nil)) })
}

func (s *story) end() error {
	if err := s.announce("That is all: the members are closed."); err != nil {
		return err
	}
	for _, p := range s.running() {
		if err := p.close(); err != nil {
			return fmt.Errorf("closing %s: %w", p.name, err)
		}
	}
	return s.watch.await(s.ctx, "the end of all members", func() bool { return len(s.running()) == 0 })
}

func (s *story) launch(names ...string) error {
	for _, name := range names {
		p, err := launch(name, s.bootstrap, s.watch.heard)
		if err != nil {
			return err
		}
		s.members = append(s.members, p)
	}
	return nil
}

// announce says what comes next and leaves time to read it.
func (s *story) announce(format string, args ...any) error {
	s.watch.say(format, args...)
	return s.rest(s.pause)
}

// rest lets the reader read.
func (s *story) rest(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	case <-timer.C:
		return nil
	}
}

// mark notes that something happens now.
func (s *story) mark(what string) {
	s.watch.say("→ %s", what)
	s.steps = append(s.steps, step{what, now()})
}

// settle waits until all roles are led.
func (s *story) settle(what string) error { return s.settleWithout(nil, what) }

func (s *story) settleWithout(suspended *process, what string) error {
	return s.watch.await(s.ctx, what, func() bool { return s.watch.lanes().shared(nil, s.names(suspended)) })
}

// names are those of the running members that are not suspended.
func (s *story) names(suspended *process) (names []string) {
	for _, p := range s.running() {
		if p != suspended {
			names = append(names, p.name)
		}
	}
	return names
}

func (s *story) running() []*process {
	return slices.DeleteFunc(slices.Clone(s.members), func(p *process) bool { return !p.running() })
}

// busiest returns the running member that leads most roles.
func (s *story) busiest() *process {
	l := s.watch.lanes()
	return slices.MaxFunc(s.running(), func(a, b *process) int {
		return cmp.Compare(len(l.share(a.name)), len(l.share(b.name)))
	})
}

// killAll leaves no process behind.
func (s *story) killAll() {
	for _, p := range s.members {
		p.kill()
	}
}
