package neli

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/sentinel"
)

// The simulator of whole processes needs access to these internals.

// Machine is what a process uses of the machine on which it runs.
type Machine struct {
	Clock  clock.Clock
	Random func(n time.Duration) time.Duration // in [0, n)
	NewID  func() string
}

// NewOn is New on a machine whose clock is not the runtime's. Its timers are the runtime's: a
// process with a slow clock is woken early, one with a fast clock late.
func NewOn(m Machine, cfg Config, barrier Barrier) (*Neli, error) {
	set, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	set.random, set.process = m.Random, m.NewID()
	set.spread = 0
	n := newNeli(set, m.Clock.Glance, barrier)
	if n.core, err = newCore(set, m.Clock, n); err != nil {
		return nil, err
	}
	n.start()
	return n, nil
}

// DecodeWire reads a record of a group, in whatever log it is. ok is false for anything else.
func DecodeWire(value []byte, group string) (*lease.Record, bool) {
	var of struct{ Log string }
	_ = json.Unmarshal(value, &of)
	r, err := lease.Codec{Group: group, Log: of.Log}.Decode(value)
	return r, err == nil
}

// SentinelHub returns what RunSentinel runs behind its socket.
func SentinelHub(ctx context.Context, cfg Config) *sentinel.Hub {
	return sentinel.NewHub(ctx, (&post{Config: cfg}).options())
}

// SentinelKeeps returns what RunSentinel keeps of its arguments.
func SentinelKeeps(cfg Config, allow []string) (Config, []string) {
	p := newPost(cfg, allow)
	return p.Config, p.allow
}

// SentinelHubOn is SentinelHub on a machine whose clock is not the runtime's.
func SentinelHubOn(ctx context.Context, m Machine, cfg Config) *sentinel.Hub {
	opt := (&post{Config: cfg}).options()
	opt.Now = m.Clock.Now
	opt.Rules = func() sentinel.Rules { return sentinel.Rules{Process: m.NewID(), Name: cfg.Name, Random: m.Random} }
	return sentinel.NewHub(ctx, opt)
}

// RegistrationOf returns what a Neli sends to a sentinel. topic is the topic id that the Neli has found.
func RegistrationOf(n *Neli, topic string) sentinel.Registration { return n.set.registration(topic) }

// Partitions returns the partitions of the change, each once, ascending.
func (c Change) Partitions() []int {
	var ps []int
	for _, t := range c.Terms {
		ps = append(ps, t.Partition)
	}
	return slices.Compact(ps)
}
