//go:build unix

package main

import (
	"errors"

	"github.com/goneli/neli/examples/internal/show"
)

// story is what happens to the members.
type story struct {
	*show.Story
	bootstrap string
}

func (s *story) tell() error { return s.Tell(s.begin, s.kill, s.suspend, s.leave, s.join, s.End) }

func (s *story) begin() error {
	s.Watch.Say("An embedded broker listens on %s. Three processes start: anna, boris and clara.\n"+
		"         They contend for %d roles. Whoever claims a role in the log leads it, for T = %v after its last\n"+
		"         beat. The number is the fencing token.",
		s.bootstrap, show.Roles, timeout)
	return errors.Join(s.Launch("anna", "boris", "clara"), s.Settle("first leaders"))
}

func (s *story) kill() error {
	victim := s.Busiest()
	if err := s.Announce("%s is about to be killed (SIGKILL). It can tell nobody: its leases must run out (T = %v),\n"+
		"         and then the others claim its roles.", victim.Name, timeout); err != nil {
		return err
	}
	s.Mark(victim.Name + " killed")
	victim.Kill()
	return s.Settle("successors of " + victim.Name)
}

func (s *story) suspend() error {
	victim := s.Busiest()
	if err := s.Announce("%s is about to be suspended (SIGSTOP) in the midst of leading, for longer than T.\n"+
		"         The dangerous case: when it wakes, it does not know that time has passed.", victim.Name); err != nil {
		return err
	}
	if err := s.Suspend(victim); err != nil {
		return err
	}
	return s.Wake(victim)
}

func (s *story) leave() error {
	leaver := s.Busiest()
	if err := s.Announce("%s is about to be closed in good order. It lets its work end, and releases each role in favour\n"+
		"         of another member: nobody has to wait for a timeout.", leaver.Name); err != nil {
		return err
	}
	if err := s.Leave(leaver); err != nil {
		return err
	}
	return s.Settle("successors of " + leaver.Name)
}

func (s *story) join() error {
	if err := s.Announce("A new process, dora, is about to start. Once it has been there for %v it gets its share,\n"+
		"         one role at a time; what does not move is not disturbed and keeps its token.", steady); err != nil {
		return err
	}
	s.Mark("dora started")
	if err := s.Launch("dora"); err != nil {
		return err
	}
	return s.Watch.Await(s.Ctx, "share of dora", func() bool { return s.Watch.Lanes().Shared([]string{"dora"}, s.Names()) })
}
