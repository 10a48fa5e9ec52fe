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
	sentinel  string            // the socket that members are told of from now on; empty: none
	stop      func() error      // ends the sentinel; nil: there is none
	bars      map[string]string // by step: what its bar is called
}

func (s *story) tell() error {
	s.bars = map[string]string{}
	return s.Tell(s.begin, s.kill, s.suspend, s.leave, s.join, s.killBesideSentinel, s.End)
}

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
	s.bars[victim.Name+" killed"] = "without a sentinel"
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
	if err := s.startSentinel(); err != nil {
		return err
	}
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

// startSentinel starts a sentinel, of which those know that start from now on. It takes Linux.
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
		ended <- neli.RunSentinel(ctx, neli.SentinelConfig{Socket: s.sentinel, KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": s.bootstrap}})
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
	if err := s.Announce("dora is about to be killed, too. She has told a sentinel on this machine: the kernel tells it of\n"+
		"         her death, and it releases her roles in her name. T = %v need not run out.", timeout); err != nil {
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
