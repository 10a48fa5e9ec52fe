package sentinel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A simulation of one process with commands, and of the sentinels that it meets one after the other. Each packet may be
// read at any time after it was sent, but in order on each connection. The process may give up its wait, and it or the
// sentinel may die, at any time. The process acts as Client does, and the sentinel as Server does.

// wire is a connection. Nobody reads it after its sentinel has died.
type wire struct {
	reg      *Registration // of a member; nil: of a guard
	guard    guardian
	up       []string // not read by the sentinel yet; "" is the end of the connection
	down     []State  // not read by the process yet
	listened bool     // of a registration that the sentinel has taken
	serial   uint64   // of a guard that the sentinel has noted
	closed   bool
}

// simulated is the state of a simulation.
type simulated struct {
	*rand.Rand
	t      *testing.T
	seed   uint64
	r      *Registry
	wires  []*wire // of the present sentinel
	link   *wire   // of the newest registration that the sentinel has taken
	deaths int

	secret    string
	number    uint64
	alive     bool
	conn      *wire // of the registration, or of the one under way
	step      string
	command   bool  // a command runs
	guardWire *wire // the newest one of the command's guard
	tie       *wire // waits for the sentinel's answer
}

func (s *simulated) open(w *wire, first string) *wire {
	w.up = []string{first}
	s.wires = append(s.wires, w)
	return w
}

// leave ends the registration with a goodbye.
func (s *simulated) leave() {
	if s.conn != nil {
		s.conn.up = append(s.conn.up, "goodbye", "")
	}
	if s.tie != nil {
		s.tie.up = append(s.tie.up, "")
	}
	s.conn, s.tie, s.step = nil, nil, ""
}

func (s *simulated) registerGuard() {
	s.tie = s.open(&wire{guard: guardian{ProcessID(s.secret), s.secret, s.number}}, "guard")
	s.step = "tie"
}

// member does the next thing that the process does.
func (s *simulated) member() {
	answered := func(w *wire) bool {
		if len(w.down) == 0 {
			return false
		}
		a := w.down[0]
		w.down = w.down[1:]
		if a == Refused {
			s.leave()
		}
		return a != Refused
	}
	switch s.step {
	case "":
		s.number++
		reg := registration(s.secret)
		reg.Number, reg.Running = s.number, s.command
		s.conn, s.step = s.open(&wire{reg: &reg}, "register"), "ask"
	case "ask":
		if answered(s.conn) {
			s.conn.up = append(s.conn.up, "confirm")
			s.step = "confirm"
		}
	case "confirm":
		switch {
		case !answered(s.conn):
		case s.conn.reg.Running:
			s.registerGuard()
		default:
			s.step = "registered"
		}
	case "tie":
		if answered(s.tie) {
			s.guardWire, s.tie, s.step = s.tie, nil, "registered"
			s.command = true // if not earlier
			if s.conn.reg.Running {
				s.conn.up = append(s.conn.up, "settled")
			}
		}
	}
}

// begins starts a command. It does not wait for a sentinel that does not answer.
func (s *simulated) begins() {
	switch {
	case s.command || s.step != "" && s.step != "registered":
	case s.conn == nil:
		s.command = true
	default:
		s.registerGuard()
	}
}

// ends ends the command: by itself while the process lives, or killed by its guard.
func (s *simulated) ends() {
	if !s.command || s.step != "" && s.step != "registered" && s.alive {
		return
	}
	s.command = false
	if s.guardWire != nil {
		s.guardWire.up = append(s.guardWire.up, "clear", "")
	}
	s.guardWire = nil
}

// giveUp ends the wait for the sentinel.
func (s *simulated) giveUp() {
	waits := s.step == "tie" && !s.command
	s.leave()
	s.command = s.command || waits // the command starts all the same
}

// over takes a death from the Registry.
func (s *simulated) over(_ Death, over bool) {
	if !over {
		return
	}
	s.deaths++
	require.False(s.t, s.alive, "seed %d: the process lives", s.seed)
	require.False(s.t, s.command, "seed %d: its command lives", s.seed)
}

// read lets the sentinel read a packet.
func (s *simulated) read(w *wire) {
	if len(w.up) == 0 || w.closed {
		return
	}
	what := w.up[0]
	w.up = w.up[1:]
	say := func(a State) { w.down = append(w.down, a) }
	switch what {
	case "register":
		say(Asked)
	case "confirm":
		fresh, err := s.r.Register(*w.reg, sound)
		if err != nil {
			say(Refused)
			w.closed = true
			return
		}
		if s.link != nil && !fresh {
			s.link.closed = true
		}
		s.link, w.listened = w, true
		say(Registered)
	case "settled":
		s.over(s.r.Settled(w.reg.Process, w.reg.Number))
	case "goodbye":
		if w.listened && s.link == w {
			s.r.Goodbye(w.reg.Process)
		}
		w.closed = true
	case "guard":
		serial, err := s.r.Guard(w.guard)
		if err != nil {
			say(Refused)
			return
		}
		w.serial = serial
		say(Registered)
	case "clear":
		if w.serial > 0 {
			s.over(s.r.Clear(w.guard.Process, w.serial))
		}
		w.closed = true
	}
}

// fires lets the kernel report the death, once the sentinel has read its connection to the end.
func (s *simulated) fires() {
	if s.alive || s.link == nil || len(s.link.up) > 0 && !s.link.closed {
		return
	}
	d, over, _ := s.r.Fired(ProcessID(s.secret), s.link.reg.Number, 1)
	s.over(d, over)
}

// restart replaces the sentinel, whose connections end.
func (s *simulated) restart() {
	s.r, s.wires, s.link = NewRegistry(10), nil, nil
	if s.alive && s.step != "" {
		s.giveUp()
	}
}

// act does something that may happen at any time.
func (s *simulated) act() {
	n := s.IntN(100)
	switch {
	case n < 45 && len(s.wires) > 0:
		s.read(s.wires[s.IntN(len(s.wires))])
	case n < 50:
		s.fires()
	case !s.alive:
		if n < 60 {
			s.ends()
		}
	case n < 80:
		s.member()
	case n < 86:
		s.giveUp()
	case n < 92:
		s.begins()
	case n < 97:
		s.ends()
	case n < 98:
		s.restart()
	default:
		s.alive = s.IntN(3) > 0
	}
}

// quiet lets everybody read everything.
func (s *simulated) quiet(also func()) {
	for range 50 {
		also()
		for _, w := range slices.Clone(s.wires) {
			for len(w.up) > 0 && !w.closed {
				s.read(w)
			}
		}
	}
}

// No death is reported of a process whose command lives, whatever was given up. Once everything was read, a death is
// reported if and only if the sentinel has said that it watches.
func TestNoDeathIsReportedWhileACommandRuns(t *testing.T) {
	told, withheld := 0, 0
	for seed := range uint64(10_000) {
		s := &simulated{Rand: rand.New(rand.NewPCG(seed, 1)), t: t, seed: seed, r: NewRegistry(10), secret: "s", alive: true}
		for range 20 + s.IntN(200) {
			s.act()
		}
		if !s.alive {
			told += s.deaths
			continue
		}
		if s.IntN(2) == 0 { // it goes on without faults
			s.quiet(s.member)
			require.Equal(t, "registered", s.step, "seed %d", seed)
		} else {
			s.quiet(func() {})
		}
		m := s.r.members[ProcessID("s")]
		says := m != nil && m.ready()
		require.True(t, says || s.step != "registered", "seed %d: it is not watched though it has registered", seed)
		starting := s.step == "tie" // then nobody will say that nothing is left, though nothing was started yet
		s.alive = false
		s.quiet(s.fires)
		if s.command {
			require.Zero(t, s.deaths, "seed %d: its command lives", seed)
		}
		s.ends()
		s.quiet(s.fires)
		require.True(t, starting || says == (s.deaths == 1), "seed %d: what a kill shows is not what the sentinel says", seed)
		told += s.deaths
		if !says {
			withheld++
		}
	}
	t.Logf("%d deaths were told, and %d times the sentinel said that it would not", told, withheld)
	require.Greater(t, told, 1000)
	require.Greater(t, withheld, 100)
}
