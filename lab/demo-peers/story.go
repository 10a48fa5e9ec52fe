//go:build unix

package main

import (
	"slices"
	"strings"

	"github.com/goneli/neli/lab/internal/show"
)

// story is what happens to the members.
type story struct{ *show.Story }

func tell(of *show.Story) error {
	s := story{of}
	s.Args = logHosts("anna", "boris", "clara", "dora", "emil")
	return s.Tell(s.begin, s.kill, s.suspend, s.restart, s.cut, s.heal, s.leave, s.End)
}

func (s story) begin() {
	s.Say("Five processes start: anna, boris, clara, dora and emil. There is no broker: each has a small log in its\n"+
		"         memory. They contend for %d roles. A process that holds a role in three of the five logs leads it for T = %v\n"+
		"         after its last beat. The number is the fencing token.",
		show.Roles, timeout)
	s.Launch("anna", "boris", "clara", "dora", "emil")
	s.Settle("first leaders")
}

func (s story) kill() {
	victim := s.Busiest()
	s.Announce("%s is about to be killed (SIGKILL), and its log with it. Four logs are left; its leases in them\n"+
		"         must run out (T = %v), and then the others claim its roles.", victim.Name, timeout)
	s.Mark(victim.Name + " and its log killed")
	s.Kill(victim)
}

func (s story) suspend() {
	victim := s.Busiest()
	s.Announce("%s is about to be suspended (SIGSTOP) while it leads, for longer than T. Its log is\n"+
		"         suspended, too: three are left. When it wakes, it does not know how much time has passed.", victim.Name)
	s.Suspend(victim)
}

// restart starts the killed member again.
func (s story) restart() {
	killed := slices.IndexFunc(s.Members, func(p *show.Process) bool { return !p.Running() })
	name := s.Members[killed].Name
	s.Announce("%s is about to be started again. Its log is empty and has another id: the others read on there,\n"+
		"         and no leader is disturbed.", name)
	s.Mark(name + " started again")
	s.Launch(name)
	s.Settle("no change")
}

// cut splits the network into the busiest member with another one, and the other three.
func (s story) cut() {
	busiest := s.Busiest()
	others := slices.DeleteFunc(s.Running(), func(p *show.Process) bool { return p == busiest })
	few, many := []*show.Process{busiest, others[0]}, others[1:]
	s.Announce("The network is about to be cut: %s here, %s there. Two logs are no majority:\n"+
		"         the leaders there must stop within T, and the three take over.", names(few, " and "), names(many, ", "))
	s.Mark("network cut: " + names(few, " and ") + " alone")
	s.order(few, "cut "+names(many, ","))
	s.order(many, "cut "+names(few, ","))
	s.Settle("leaders in the larger half", few...)
}

func names(all []*show.Process, separator string) string {
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	return strings.Join(names, separator)
}

func (s story) order(all []*show.Process, order string) {
	for _, p := range all {
		s.Do(func() error { return p.Say(order) })
	}
}

func (s story) heal() {
	s.Mark("network whole again")
	s.order(s.Running(), "heal")
	s.Settle("leaders")
}

func (s story) leave() {
	leaver := s.Busiest()
	s.Announce("%s is about to be closed cleanly. It releases its roles, and its log goes with it:\n"+
		"         no process has to wait for a timeout.", leaver.Name)
	s.Leave(leaver)
}
