//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/goneli/neli"
	"github.com/goneli/neli/examples/internal/show"
)

// story is what happens to the members.
type story struct {
	*show.Story
	bootstrap string
	sentinel  string            // the socket of the sentinel for members that start from now on; empty: none
	stop      func() error      // ends the sentinel; nil: there is none
	bars      map[string]string // the name of a step's bar
}

func (s *story) tell() error {
	s.bars = map[string]string{}
	return s.Tell(s.begin, s.kill, s.suspend, s.leave, s.join, s.killBesideSentinel, s.End)
}

func (s *story) begin() error {
	s.Watch.Say("An embedded broker listens on %s. Three processes start: anna, boris and clara.\n"+
		"         They contend for %d roles. A process that claims a role in the log leads it for T = %v after its last\n"+
		"         beat. The number is the fencing token.",
		s.bootstrap, show.Roles, timeout)
	return errors.Join(s.Launch("anna", "boris", "clara"), s.Settle("first leaders"))
}

func (s *story) kill() error {
	victim := s.Busiest()
	if err := s.Announce("%s is about to be killed (SIGKILL). It cannot tell the others: its leases must run out (T = %v),\n"+
		"         and then the others claim its roles.", victim.Name, timeout); err != nil {
		return err
	}
	s.Mark(victim.Name + " killed")
	s.bars[victim.Name+" killed"] = "without a sentinel"
	victim.Kill()
	return s.Settle("successors of " + victim.Name)
}

func (s *story) suspend() error {
	victim := s.Busiest()
	if err := s.Announce("%s is about to be suspended (SIGSTOP) while it leads, for longer than T.\n"+
		"         This is the dangerous case: when it wakes, it does not know how much time has passed.", victim.Name); err != nil {
		return err
	}
	if err := s.Suspend(victim); err != nil {
		return err
	}
	return s.Wake(victim)
}

func (s *story) leave() error {
	leaver := s.Busiest()
	if err := s.Announce("%s is about to be closed cleanly. It lets its work end, and releases each role in favour\n"+
		"         of another member: no process has to wait for a timeout.", leaver.Name); err != nil {
		return err
	}
	if err := s.Leave(leaver); err != nil {
		return err
	}
	return s.Settle("successors of " + leaver.Name)
}

func (s *story) join() error {
	if err := s.startSentinel(); err != nil {
		return err
	}
	if err := s.Announce("A new process, dora, is about to start. Once it has been a member for %v, it gets its share,\n"+
		"         one role at a time. Roles that do not move are not disturbed, and keep their tokens.", steady); err != nil {
		return err
	}
	s.Mark("dora started")
	if err := s.Launch("dora"); err != nil {
		return err
	}
	return s.Watch.Await(s.Ctx, "share of dora", func() bool { return s.Watch.Lanes().Shared([]string{"dora"}, s.Names()) })
}

// startSentinel starts a sentinel for members that start from now on. It needs Linux.
func (s *story) startSentinel() error {
	if runtime.GOOS != "linux" {
		return nil
	}
	dir, err := os.MkdirTemp("", "neli-demo-")
	if err != nil {
		return err
	}
	s.sentinel = filepath.Join(dir, "sentinel.sock")
	ctx, cancel := context.WithCancel(s.Ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- neli.RunSentinel(ctx, neli.Config{Sentinel: s.sentinel, KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": s.bootstrap}})
	}()
	s.stop = func() error {
		cancel()
		return errors.Join(<-ended, os.RemoveAll(dir))
	}
	return nil
}

// endSentinel ends the sentinel, if there is one.
func (s *story) endSentinel() {
	if s.stop == nil {
		return
	}
	if err := s.stop(); err != nil {
		s.Watch.Say("the sentinel: %v", err)
	}
}

func (s *story) killBesideSentinel() error {
	if s.sentinel == "" {
		return nil
	}
	if err := s.Announce("dora is about to be killed, too, but a sentinel on this machine watches her. The kernel tells it\n"+
		"         of her death, and it releases her roles in her name: T = %v need not run out.", timeout); err != nil {
		return err
	}
	if err := s.Rest(timeout); err != nil { // no term is released before it is T old
		return err
	}
	s.Mark("dora killed, beside a sentinel")
	s.bars["dora killed, beside a sentinel"] = "with a sentinel"
	s.Members[len(s.Members)-1].Kill()
	return s.Settle("successors of dora")
}
