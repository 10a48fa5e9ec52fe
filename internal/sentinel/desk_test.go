package sentinel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/lease"
)

const testT = 5 * time.Second

// desk has a Watch, logs that the test fills itself, and members, each of which is only a lease.Lease.
type desk struct {
	t    *testing.T
	w    *Watch
	now  clock.Instant
	logs [][]lease.Record
	ids  []string
	said []elector.Append // everything that the sentinel has appended
	mute bool             // the sentinel's records do not reach the logs
	all  []*seat
}

// seat is a member's view of one log.
type seat struct {
	l   *lease.Lease
	log int
}

func newDesk(t *testing.T, logs int, small bool) *desk {
	d := &desk{t: t, now: clock.Instant{Mono: 1 << 50, Wall: 1 << 50, Raw: 1 << 50}, logs: make([][]lease.Record, logs), ids: make([]string, logs)}
	d.w = NewWatch(Rules{Process: "sentinel", Name: "s", Group: "g", Small: small, T: testT, Rho: 0.0005, Random: func(time.Duration) time.Duration { return 0 }})
	d.w.Open(logs, "id", d.now)
	for i := range logs {
		if small {
			d.ids[i] = "incarnation"
		}
		d.w.Read(elector.Entry{Partition: i, Reset: true, Whole: true, ID: d.ids[i]}, nil, nil, d.now)
	}
	d.carry()
	return d
}

// member adds a member that has read a log from its beginning.
func (d *desk) member(process string, log int) *seat {
	s := &seat{lease.New(lease.Rules{Process: process, Name: "name of " + process, T: testT, Rho: 0.0005, History: 1000}), log}
	s.l.Begin(0, true, d.now)
	for o := range d.logs[log] {
		s.l.Read(int64(o), &d.logs[log][o], d.now)
	}
	d.all = append(d.all, s)
	return s
}

// append appends a record to a log, and lets all members and the Watch read it.
func (d *desk) append(log int, r lease.Record) {
	o := int64(len(d.logs[log]))
	d.logs[log] = append(d.logs[log], r)
	for _, s := range d.all {
		if s.log == log {
			s.l.Read(o, &r, d.now)
		}
	}
	d.w.Read(elector.Entry{Partition: log, Offset: o, ID: d.ids[log]}, &r, nil, d.now)
	d.carry()
}

// carry does what Ready says, until nothing is left to do.
func (d *desk) carry() {
	for {
		out := d.w.Ready(d.now)
		if len(out.Append) == 0 {
			return
		}
		d.said = append(d.said, out.Append...)
		for _, a := range out.Append {
			if d.mute {
				continue
			}
			d.append(a.Partition, a.Record)
			d.w.Acked(a, nil, d.now)
		}
	}
}

func (d *desk) pass(t time.Duration) {
	for end := d.now.Add(t); d.now.Mono < end.Mono; {
		step := min(d.w.Ready(d.now).WakeIn, end.Mono.Sub(d.now.Mono))
		d.now = d.now.Add(step)
		d.w.Tick(d.now)
		d.carry()
	}
}

// claim lets a member claim roles, and requires that it gets them.
func (d *desk) claim(s *seat, roles ...int32) {
	d.now = d.now.Add(time.Duration(max(0, s.l.FreshAt()-d.now.Raw)) * time.Duration(btoi(!s.l.Known())))
	r, ok := s.l.Claim(roles, d.now)
	require.True(d.t, ok, "the test's own claim")
	d.append(s.log, r)
	for _, role := range roles {
		_, mine := s.l.Mine(role)
		require.True(d.t, mine, "the test's own claim of %d", role)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// heard returns the sentinel's records of some kinds since the last call.
func (d *desk) heard(kinds ...lease.Kind) []lease.Record {
	var out []lease.Record
	for _, a := range d.said {
		for _, k := range kinds {
			if a.Record.Kind == k {
				out = append(out, a.Record)
			}
		}
	}
	d.said = nil
	return out
}

func (d *desk) die(process string) {
	d.w.Died(Death{Process: process, Name: "name of " + process, T: testT}, d.now)
	d.carry()
}

const foreignSeq = 1 << 52
