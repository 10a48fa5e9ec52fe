package integration

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
)

// sentinelTimeout is T where it matters that something takes far less.
const sentinelTimeout = 5 * time.Second

// A leader that is killed costs T, and beside a sentinel a small part of it.
func TestSentinel(t *testing.T) {
	e := newEnv(t, 1, 0, nil)
	t.Run("with one", func(t *testing.T) {
		took := sentinelKill(t, e, startSentinel(t, e))
		assert.Less(t, took, sentinelTimeout/5)
	})
	t.Run("without", func(t *testing.T) {
		took := sentinelKill(t, e, "")
		assert.Greater(t, took, sentinelTimeout*3/4-busyMachine, "its lease has to run out")
	})
	t.Run("the only member is started anew", func(t *testing.T) {
		el := sentinelElection(t, e, startSentinel(t, e))
		el.start("first")
		old := el.leader(0, firstLeader)
		old.logs(watchedLine, 1, patience)
		waitPast(t, old.since+sentinelTimeout)
		at := old.kill()
		el.start("again")
		next := el.leader(0, el.bound+patience, old.member)
		t.Logf("killed → leads again: %v", (next.since - at).Round(time.Millisecond))
		assert.Greater(t, next.token, old.token)
		assert.Less(t, next.since-at, sentinelTimeout/2, "the process has to start, too")
	})
}

// watchedLine is what a member says when a sentinel has taken it.
const watchedLine = "a sentinel watches this process"

// startSentinel runs a sentinel in this process, and returns its socket.
func startSentinel(t *testing.T, e *env) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "neli-sentinel-") // the path of a socket is short
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o750))
	socket := filepath.Join(dir, "s")
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	logger, _ := newHostileLogger()
	go func() {
		ended <- neli.RunSentinel(ctx, neli.SentinelConfig{Socket: socket, KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": e.bootstrap},
			Provider: client(), Logger: logger})
	}()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
		assert.NoError(t, os.RemoveAll(dir))
	})
	return socket
}

func sentinelElection(t *testing.T, e *env, socket string) *election {
	return exclusive(t, e, neli.Open, sentinelTimeout, func(p *contenderParams) { p.Sentinel = socket })
}

// sentinelKill kills a leader whose term is T old, and returns how long it took until the next one led.
func sentinelKill(t *testing.T, e *env, socket string) time.Duration {
	el := sentinelElection(t, e, socket)
	el.start("first")
	old := el.leader(0, firstLeader)
	el.follow("second", "third")
	if socket != "" {
		for _, m := range el.members {
			m.logs(watchedLine, 1, patience)
		}
	}
	waitPast(t, old.since+sentinelTimeout+sentinelTimeout/10)
	at := old.kill()
	next := el.leader(0, el.bound+patience, old.member)
	assert.Greater(t, next.token, old.token)
	took := next.since - at
	t.Logf("killed → next leader: %v", took.Round(time.Millisecond))
	return took
}
