package neli

import "time"

// What the simulator of whole curators needs of the inside.

// Machine is what a process has of the machine that it runs on.
type Machine struct {
	Now    func() (mono, wall time.Duration)
	Random func(n time.Duration) time.Duration // in [0, n)
	NewID  func() string
}

// NewOn is New on a machine whose clock is not the runtime's. Timers are: a
// process with a slow clock is woken early, one with a fast clock late.
func NewOn(m Machine, cfg Config, barrier Barrier) (*Neli, error) {
	set, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	set.random, set.instance = m.Random, m.NewID()
	set.spread = 0
	now := func() instant {
		mono, wall := m.Now()
		return instant{mono: mono, wall: wall}
	}
	n := newNeli(set, now, barrier)
	if n.arb, err = newArbiter(cfg.Provider, set, n.now, n.alive); err != nil {
		return nil, err
	}
	n.start()
	return n, nil
}

// WireRecord is a record as the log has it.
type WireRecord struct {
	Kind, Member, Name, To string
	Token, Read            int64
}

// DecodeWire reads a record of group; ok is false for anything else.
func DecodeWire(value []byte, group string) (r WireRecord, ok bool) {
	d, err := decode(value, group)
	return WireRecord{string(d.kind), d.member, d.name, d.to, d.token, d.read}, err == nil
}

// SilenceOf is T′.
func SilenceOf(t time.Duration, drift float64) time.Duration { return silence(t, drift) }
