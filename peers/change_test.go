package peers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/peers/internal/wire"
)

func TestHostsServeProcessesWithACommonList(t *testing.T) {
	old, both, alone := lists{"a b c", ""}, lists{"a b c", "d e f"}, lists{"d e f", ""}
	for _, c := range []struct {
		host, process lists
		serves        bool
	}{
		{old, old, true}, {old, both, true}, {old, alone, false},
		{both, old, true}, {both, both, true}, {both, alone, false}, // not before it has asked the old hosts
		{alone, old, false}, {alone, both, true}, {alone, alone, true},
		{both, lists{"a b c", "d e g"}, false}, {both, lists{"d e f", "g"}, false}, {both, lists{"d e f", "a b c"}, false},
		{lists{"d e f", "g"}, both, false}, {lists{"d e f", "g"}, old, false},
	} {
		assert.Equal(t, c.serves, c.host.serve(c.process), "whether a host with %v serves a process with %v", c.host, c.process)
		assert.Equal(t, c.host == both && c.process == alone, c.host.newAlone(c.process))
		assert.Equal(t, c.host == both && c.process == old, c.host.oldAlone(c.process))
	}
}

// moving returns two lists of three hosts, with no host in common.
func moving(t *testing.T) (old, next []Host) {
	t.Helper()
	all := Hosts(t, 6)
	return all[:3], all[3:]
}

// startAll starts hosts with the same configuration.
func startAll(t *testing.T, c Config, hosts ...Host) {
	t.Helper()
	for _, h := range hosts {
		own := c
		own.Self = h.ID
		startHost(t, own)
	}
}

// Once a process with the new list alone has started, the old hosts, which it does not know, serve no
// process with the old list alone. It is served when their leases are over, and knows their largest ballot.
func TestTheNewListAloneEndsServiceForTheOldOne(t *testing.T) {
	t.Parallel()
	const long = 15 * time.Second // a busy machine takes seconds for what comes before the wait
	old, next := moving(t)
	startAll(t, Config{Hosts: old, Next: next, HeartbeatTimeout: long}, append(old, next...)...)
	before := join(t, Config{Hosts: old, HeartbeatTimeout: long})
	between := join(t, Config{Hosts: old, Next: next, HeartbeatTimeout: long})
	before.begun(t)
	between.begun(t)
	require.Len(t, between.set.(kafka.Joint).Lists(), 2)
	for log := range old {
		require.NoError(t, before.sure(log, "x", 77))
	}
	began := time.Now()
	after := join(t, Config{Hosts: next, HeartbeatTimeout: long})
	before.journal.await(t, "restart this one with that list")
	before.await(t, "no log takes records", func([]view) bool {
		before.mu.Unlock()
		defer before.mu.Lock()
		for log := range old {
			if _, err := before.append(log, "late"); err == nil {
				return false
			}
		}
		return true
	})
	after.begun(t)
	assert.GreaterOrEqual(t, time.Since(began), clock.Wait(long, defaultDrift), "served while leases of the old list may run")
	for log := range next {
		assert.EqualValues(t, 77, after.view(log).top, "the largest ballot of the old list")
	}
	between.mustAppend(t, 0, "y")
	require.Equal(t, 1, between.view(0).resets, "a process with both lists lost its connection")
}

// While most old hosts have the old list alone, no process with the new one alone is served.
func TestTheNewListAloneWaitsForTheOldHosts(t *testing.T) {
	t.Parallel()
	old, next := moving(t)
	startAll(t, Config{Hosts: old, HeartbeatTimeout: testTimeout}, old[:2]...)
	startAll(t, Config{Hosts: old, Next: next, HeartbeatTimeout: testTimeout}, append(next, old[2])...)
	before := join(t, Config{Hosts: old, HeartbeatTimeout: testTimeout})
	before.begun(t)
	early := join(t, Config{Hosts: next, HeartbeatTimeout: testTimeout})
	served := false
	early.await(t, "why the hosts wait", func(logs []view) bool {
		served = slices.ContainsFunc(logs, func(v view) bool { return v.resets > 0 })
		return served || strings.Contains(early.journal.String(), "1 of 3 old log hosts have left the old list")
	})
	require.False(t, served, "the new list alone is served beside the old one alone")
	before.mustAppend(t, 0, "x")
}

// Hosts that are in the old list and the new one refuse processes with the new one if Next was never set.
func TestAChangeWithoutNextIsRefused(t *testing.T) {
	hosts := Hosts(t, 4)
	startHosts(t, Config{Hosts: hosts[:3], HeartbeatTimeout: testTimeout})
	m := join(t, Config{Hosts: hosts[1:], HeartbeatTimeout: testTimeout})
	err := m.final(t)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "all must first have both (Config.Next)")
}

func TestRecordsOfTheOldListAloneAreRefusedAtOnce(t *testing.T) {
	h := testHost()
	h.lists.next = "b"
	sub, _, err := h.subscribe(&wire.Hello{Agreement: h.agreed.message("a")})
	require.NoError(t, err)
	h.leave()
	id := h.store.ID()
	require.ErrorIs(t, h.append(&wire.Append{Seq: 1, Incarnation: id[:], Value: []byte("x")}, sub), errLeft, "appended after the host has left the old list")
	require.ErrorContains(t, <-sub.cut, errLeft.Error())
	_, _, err = h.subscribe(&wire.Hello{Agreement: h.agreed.message("a")})
	require.ErrorContains(t, err, errLeft.Error(), "served after the host has left the old list")
}
