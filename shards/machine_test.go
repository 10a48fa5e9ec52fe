package shards

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The table has the action and the next state for each event in each state.
func TestMachine(t *testing.T) {
	var (
		idle      = machine{}
		preparing = machine{state: Preparing}
		called    = machine{state: Preparing, ended: true} // called off
		adopted   = machine{state: Preparing, led: true}
		stopped   = machine{state: Preparing, led: true, ended: true}
		prepared  = machine{state: Prepared}
		due       = machine{state: Prepared, led: true}
		serving   = machine{state: Serving, led: true}
		draining  = machine{state: Draining, led: true}
		giving    = machine{state: Draining}
	)
	type row struct {
		then machine
		do   action
	}
	for _, c := range []struct {
		from machine
		on   [7]row // offered, led, ready, failed, calledOff, over, left
	}{
		{idle, [7]row{{preparing, prepare}, {adopted, prepare}, {idle, nothing}, {idle, nothing}, {idle, nothing}, {idle, nothing}, {idle, nothing}}},
		{preparing, [7]row{{preparing, wait}, {adopted, adopt}, {prepared, nothing}, {idle, nothing}, {called, cancel}, {called, cancel}, {preparing, nothing}}},
		{called, [7]row{{called, wait}, {called, wait}, {giving, abandon}, {idle, nothing}, {called, nothing}, {called, nothing}, {called, nothing}}},
		{adopted, [7]row{{adopted, wait}, {adopted, adopt}, {due, nothing}, {idle, nothing}, {adopted, nothing}, {stopped, cancel}, {adopted, nothing}}},
		{stopped, [7]row{{stopped, wait}, {stopped, wait}, {draining, abandon}, {idle, nothing}, {stopped, nothing}, {stopped, nothing}, {stopped, nothing}}},
		{prepared, [7]row{{giving, abandon}, {serving, serve}, {prepared, nothing}, {prepared, nothing}, {giving, abandon}, {giving, abandon}, {prepared, nothing}}},
		{due, [7]row{{due, wait}, {serving, serve}, {due, nothing}, {due, nothing}, {due, nothing}, {draining, abandon}, {due, nothing}}},
		{serving, [7]row{{serving, wait}, {serving, wait}, {serving, nothing}, {serving, nothing}, {serving, nothing}, {draining, nothing}, {idle, nothing}}},
		{draining, [7]row{{draining, wait}, {draining, wait}, {draining, nothing}, {draining, nothing}, {draining, nothing}, {draining, nothing}, {idle, nothing}}},
		{giving, [7]row{{giving, wait}, {giving, wait}, {giving, nothing}, {giving, nothing}, {giving, nothing}, {giving, nothing}, {idle, nothing}}},
	} {
		for e, want := range c.on {
			m := c.from
			do := m.on(event(e))
			m.led, m.ended = m.led && m.state != Idle, m.ended && m.state == Preparing // nothing reads them in other states
			assert.Equal(t, want, row{m, do}, "%+v, event %d", c.from, e)
		}
	}
}

// Whatever happens, in any order: one call at a time, Serve after Prepare, and one Serve or Abandon for each Prepare
// that was ready.
func TestEventsInAnyOrder(t *testing.T) {
	type node struct {
		machine
		calls int8 // what is at work: 0 none, 1 Prepare, 2 Serve or Abandon
		owes  bool // a Prepare was ready, and neither Serve nor Abandon was called yet
	}
	seen, queue := map[node]bool{}, []node{{}}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if seen[at] {
			continue
		}
		seen[at] = true
		for e := offered; e <= left; e++ {
			if (e == ready || e == failed) && at.calls != 1 || e == left && at.calls != 2 {
				continue // nothing that could report it is at work
			}
			next := at
			do := next.on(e)
			if e == ready || e == failed || e == left {
				next.calls = 0
			}
			next.owes = next.owes || e == ready
			switch do {
			case prepare, serve, abandon:
				require.Zero(t, next.calls, "two calls: %+v, event %d", at, e)
				require.Equal(t, do != prepare, next.owes, "%+v, event %d", at, e)
				next.calls, next.owes = 1, false
				if do != prepare {
					next.calls = 2
				}
			}
			require.False(t, next.state == Idle && (next.owes || next.calls > 0), "%+v, event %d", at, e)
			queue = append(queue, next)
		}
	}
	require.Greater(t, len(seen), 8)
}
