//go:build linux

package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
)

const (
	sentinelEnv = "NELI_WATCHED_MEMBER" // a member's orders, as JSON
	// sentinelT is T beside a sentinel. Half of it is longer than round trips and shorter than a lease,
	// even on a machine that gives the members no processor for seconds.
	sentinelT = 20 * time.Second
)

func init() { programs[sentinelEnv] = beWatched }

// watchedOrders are the orders of a member beside a sentinel.
type watchedOrders struct {
	Hosts        []Host
	Self, Socket string
}

// beWatched is a member with a log, beside a sentinel, until it is killed. It reports when a
// sentinel watches it, and when it leads.
func beWatched(orders string) error {
	var o watchedOrders
	if err := json.Unmarshal([]byte(orders), &o); err != nil {
		return err
	}
	n, err := neli.New(neli.Config{Provider: &provider{Config{Hosts: o.Hosts, Self: o.Self}}, LeaderGroupID: "test", Name: o.Self,
		HeartbeatTimeout: sentinelT, Sentinel: o.Socket, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	if _, err := n.Background(func() { pause(context.Background(), time.Millisecond) }); err != nil {
		return err
	}
	told, led := false, false
	for {
		if !told && n.Stats().Sentinel == "watching" {
			told = true
			fmt.Println("watched")
		}
		if leads := n.IsLeader(); leads != led {
			led = leads
			fmt.Println("leads", leads, nanos())
		}
		pause(context.Background(), time.Millisecond)
	}
}

// A sentinel uses the members' own Provider, without a log of its own. It releases a dead member's roles
// on a majority of the logs, even if the member's log has died with it.
func TestASentinelReleasesWhatAKilledPeerLed(t *testing.T) {
	t.Parallel()
	hosts := Hosts(t, 3)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o750)) //nolint:gosec // a directory
	socket := filepath.Join(dir, "s")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- neli.RunSentinel(ctx, neli.Config{Sentinel: socket, Name: "sentinel", Provider: &provider{Config{Hosts: hosts}}})
	}()
	t.Cleanup(func() { stop(); assert.NoError(t, <-ended) })

	events := make(chan string, 100)
	members := map[string]*process{}
	for _, h := range hosts {
		p := startProcess(t, h.ID, sentinelEnv, watchedOrders{hosts, h.ID, socket})
		members[h.ID] = p
		go func() {
			for line := range p.lines {
				events <- p.name + " " + line
			}
		}()
	}
	next := func(is func(who, what string) bool) string {
		t.Helper()
		late := time.After(within)
		for {
			select {
			case e := <-events:
				if who, what, _ := strings.Cut(e, " "); is(who, what) {
					return who
				}
			case <-late:
				require.FailNow(t, "not in time")
			}
		}
	}
	leader, watched := "", 0
	next(func(who, what string) bool {
		if strings.HasPrefix(what, "leads true") {
			leader = who
		}
		if what == "watched" {
			watched++
		}
		return leader != "" && watched == len(hosts)
	})
	pause(t.Context(), 2*sentinelT) // no term is released before it is T old
	killed := time.Now()
	require.NoError(t, members[leader].cmd.Process.Signal(syscall.SIGKILL))
	next(func(who, what string) bool { return who != leader && strings.HasPrefix(what, "leads true") })
	took := time.Since(killed)
	t.Logf("killed → next leader: %v", took.Round(time.Millisecond))
	require.Less(t, took, sentinelT/2, "takes longer than round trips on a busy machine")
}

// The members of two groups may have the same name, and their hosts the same ids.
func TestASentinelWithOtherHostsRefuses(t *testing.T) {
	hosts := Hosts(t, 1)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o750)) //nolint:gosec // a directory
	for name, c := range map[string]struct {
		of   []Host
		want string
	}{"own": {hosts, "watching"}, "other": {Hosts(t, 1), "refused"}} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(dir, name)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				ended <- neli.RunSentinel(ctx, neli.Config{Sentinel: socket, Name: "sentinel", Provider: &provider{Config{Hosts: c.of}}})
			}()
			t.Cleanup(func() { stop(); assert.NoError(t, <-ended) })
			said, logger := newJournal()
			n, err := neli.New(neli.Config{Provider: &provider{Config{Hosts: hosts, Self: hosts[0].ID}}, LeaderGroupID: "test", HeartbeatTimeout: time.Second,
				Sentinel: socket, Logger: logger})
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, n.Close()) })
			require.Eventually(t, func() bool { return n.Stats().Sentinel == c.want }, within, time.Millisecond, "the sentinel has %s hosts", name)
			if c.want == "refused" {
				said.await(t, "their lists of hosts differ")
			}
		})
	}
}

func TestTheSameHostsHaveTheSameIdentity(t *testing.T) {
	identity := func(hosts ...Host) string {
		v, err := newLogSet(t.Context(), Config{Hosts: hosts}, kafka.LogSettings{Group: "g", HeartbeatTimeout: time.Second, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer v.Close()
		return v.Identity(t.Context())
	}
	a, b, c := Host{"a", "127.0.0.1:1"}, Host{"b", "127.0.0.1:2"}, Host{"c", "127.0.0.1:3"}
	require.NotEmpty(t, identity(a, b, c), "a list has an identity")
	require.Equal(t, identity(a, b, c), identity(c, b, a), "in any order")
	require.NotEqual(t, identity(a, b, c), identity(a, b, Host{"c", "127.0.0.1:4"}), "another address is another host")
}
