//go:build unix

package main

import (
	"errors"
	"strings"

	"github.com/goneli/neli/examples/internal/show"
)

// story is what happens to the members.
type story struct{ *show.Story }

func (s *story) tell() error {
	return s.Tell(s.begin, s.kill, s.suspend, s.restart, s.cut, s.heal, s.leave, s.End)
}

func (s *story) begin() error {
	s.Watch.Say("Five processes start: anna, boris, clara, dora and emil. There is no broker: each has a small log in its\n"+
		"         memory. They contend for %d roles. A process that holds a role in three of the five logs leads it for T = %v\n"+
		"         after its last beat. The number is the fencing token.",
		show.Roles, timeout)
	return errors.Join(s.Launch("anna", "boris", "clara", "dora", "emil"), s.Settle("first leaders"))
}

func (s *story) kill() error {
	victim := s.Busiest()
	if err := s.Announce("%s is about to be killed (SIGKILL), and its log with it. Four logs are left; its leases in them\n"+
		"         must run out (T = %v), and then the others claim its roles.", victim.Name, timeout); err != nil {
		return err
	}
	s.Mark(victim.Name + " and its log killed")
	victim.Kill()
	return s.Settle("successors of " + victim.Name)
}

func (s *story) suspend() error {
	victim := s.Busiest()
	if err := s.Announce("%s is about to be suspended (SIGSTOP) while it leads, for longer than T. Its log is\n"+
		"         suspended, too: three are left. When it wakes, it does not know how much time has passed.", victim.Name); err != nil {
		return err
	}
	if err := s.Suspend(victim); err != nil {
		return err
	}
	return s.Wake(victim)
}

// restart starts the killed member again.
func (s *story) restart() error {
	name := ""
	for _, p := range s.Members {
		if !p.Running() {
			name = p.Name
		}
	}
	if err := s.Announce("%s is about to be started again. Its log is empty and has another id: the others read on there,\n"+
		"         and no leader is disturbed.", name); err != nil {
		return err
	}
	s.Mark(name + " started again")
	if err := s.Launch(name); err != nil {
		return err
	}
	return s.Settle("no change")
}

// halves splits the members into the busiest one with another one, and the other three.
func (s *story) halves() (few, many []*show.Process) {
	few = []*show.Process{s.Busiest()}
	for _, p := range s.Running() {
		switch {
		case p == few[0]:
		case len(few) == 1:
			few = append(few, p)
		default:
			many = append(many, p)
		}
	}
	return few, many
}

func names(all []*show.Process) (names []string) {
	for _, p := range all {
		names = append(names, p.Name)
	}
	return names
}

func (s *story) cut() error {
	few, many := s.halves()
	if err := s.Announce("The network is about to be cut: %s here, %s there. Two logs are no majority:\n"+
		"         the leaders there must stop within T, and the three take over.", strings.Join(names(few), " and "),
		strings.Join(names(many), ", ")); err != nil {
		return err
	}
	s.Mark("network cut: " + strings.Join(names(few), " and ") + " alone")
	for _, half := range [][2][]*show.Process{{few, many}, {many, few}} {
		for _, p := range half[0] {
			if err := p.Tell("cut " + strings.Join(names(half[1]), ",")); err != nil {
				return err
			}
		}
	}
	return s.Settle("leaders in the larger half", few...)
}

func (s *story) heal() error {
	s.Mark("network whole again")
	for _, p := range s.Running() {
		if err := p.Tell("heal"); err != nil {
			return err
		}
	}
	return s.Settle("leaders")
}

func (s *story) leave() error {
	leaver := s.Busiest()
	if err := s.Announce("%s is about to be closed cleanly. It releases its roles, and its log goes with it:\n"+
		"         no process has to wait for a timeout.", leaver.Name); err != nil {
		return err
	}
	if err := s.Leave(leaver); err != nil {
		return err
	}
	return s.Settle("successors of " + leaver.Name)
}
