//go:build unix

// Command demo shows leader election at work, on one machine and without your own Kafka. It starts an
// embedded broker and several member processes. It kills one, suspends and wakes another, closes one,
// starts one and kills that with a sentinel running, and it measures what the members believed meanwhile.
// It needs a Unix, because it suspends processes.
//
//	go run ./demo
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/internal/show"
	"github.com/twmb/franz-go/pkg/kfake"
)

const (
	timeout = 1500 * time.Millisecond // T: how long a lease lasts after the last beat
	steady  = 15 * time.Second        // how long a process must have been a member to be given roles
)

func main() { show.Main("demo", 12, member, tell) }

// member contends for all roles. args are the broker and the socket of a sentinel, "" for none.
func member(name string) error {
	return show.Member(func(args []string) neli.Config {
		return neli.Config{
			KafkaConfig:      neli.KafkaConfigMap{"bootstrap.servers": args[0]},
			LeaderGroupID:    "demo",
			Name:             name,
			Partitions:       show.Roles,
			HeartbeatTimeout: timeout,
			Sentinel:         args[1],
		}
	}, func(string) {})
}

// story is what happens to the members.
type story struct {
	*show.Story
	bootstrap   string
	endSentinel func() // nil: there is no sentinel
}

func tell(of *show.Story) error {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second))
	if err != nil {
		return fmt.Errorf("starting the embedded broker: %w", err)
	}
	defer broker.Close()
	s := &story{Story: of, bootstrap: broker.ListenAddrs()[0]}
	defer func() {
		s.KillAll()
		if s.endSentinel != nil {
			s.endSentinel()
		}
	}()
	s.Args = []string{s.bootstrap, ""}
	return s.Tell(s.begin, s.kill, s.suspend, s.leave, s.join, s.killBesideSentinel, s.End)
}

func (s *story) begin() {
	s.Say("An embedded broker listens on %s. Three processes start: anna, boris and clara.\n"+
		"         They contend for %d roles. A process that claims a role in the log leads it for T = %v after its last\n"+
		"         beat. The number is the fencing token.",
		s.bootstrap, show.Roles, timeout)
	s.Launch("anna", "boris", "clara")
	s.Settle("first leaders")
}

func (s *story) kill() {
	victim := s.Busiest()
	s.Announce("%s is about to be killed (SIGKILL). It cannot tell the others: its leases must run out (T = %v),\n"+
		"         and then the others claim its roles.", victim.Name, timeout)
	s.Mark(victim.Name + " killed")
	s.Bar("without a sentinel")
	s.Kill(victim)
}

func (s *story) suspend() {
	victim := s.Busiest()
	s.Announce("%s is about to be suspended (SIGSTOP) while it leads, for longer than T.\n"+
		"         This is the dangerous case: when it wakes, it does not know how much time has passed.", victim.Name)
	s.Suspend(victim)
}

func (s *story) leave() {
	leaver := s.Busiest()
	s.Announce("%s is about to be closed cleanly. It lets its work end, and releases each role in favour\n"+
		"         of another member: no process has to wait for a timeout.", leaver.Name)
	s.Leave(leaver)
}

func (s *story) join() {
	s.startSentinel()
	s.Announce("A new process, dora, is about to start. Once it has been a member for %v, it gets its share,\n"+
		"         one role at a time. Roles that do not move are not disturbed, and keep their tokens.", steady)
	s.Mark("dora started")
	s.Launch("dora")
	s.Await("share of dora", func() bool { return s.Shares()["dora"] > 0 })
	s.Settle("share of dora")
}

// startSentinel starts a sentinel for members that start from now on. It needs Linux.
func (s *story) startSentinel() {
	if runtime.GOOS != "linux" {
		return
	}
	s.Do(func() error {
		dir, err := os.MkdirTemp("", "neli-demo-")
		if err != nil {
			return err
		}
		socket := filepath.Join(dir, "sentinel.sock")
		s.Args = []string{s.bootstrap, socket}
		ctx, cancel := context.WithCancel(s.Ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- neli.RunSentinel(ctx, neli.Config{Sentinel: socket, KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": s.bootstrap}})
		}()
		s.endSentinel = func() {
			cancel()
			if err := errors.Join(<-ended, os.RemoveAll(dir)); err != nil {
				s.Say("the sentinel: %v", err)
			}
		}
		return nil
	})
}

func (s *story) killBesideSentinel() {
	if s.endSentinel == nil {
		return
	}
	s.Announce("dora is about to be killed, too, but a sentinel on this machine watches her. The kernel tells it\n"+
		"         of her death, and it releases her roles in her name: T = %v need not run out.", timeout)
	s.Rest(timeout) // no term is released before it is T old
	s.Mark("dora killed, beside a sentinel")
	s.Bar("with a sentinel")
	s.Kill(s.Members[len(s.Members)-1])
}
