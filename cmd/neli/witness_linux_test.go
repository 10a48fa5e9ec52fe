package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"golang.org/x/sys/unix"
)

// witness is a command that locks a file as long as it or one of its children lives. It reports an
// overlap if another process has the lock.
const witness = `exec 9>>"$WITNESS"; flock -n 9 || { echo overlap $NELI_TOKEN; exit 99; }
echo token $NELI_TOKEN; sleep 1000 & echo grandchild $!; echo child $$; wait`

// rounds is how often a leader is disturbed: NELI_ROUNDS, or a few.
func rounds(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("NELI_ROUNDS"))
	if os.Getenv("NELI_ROUNDS") == "" {
		return 8
	}
	require.NoError(t, err)
	return n
}

// Whatever is killed or stopped, the next command starts only when the one before and everything
// that it started are dead, and its token is higher.
func TestNeverTwoCommands(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed ", seed)
	draw := rand.New(rand.NewPCG(seed, 0))
	c := broker(t)
	t.Setenv("WITNESS", filepath.Join(t.TempDir(), "witness"))
	leader, follower := contender(t, c), contender(t, c)
	last, struck := 0, 0
	for round := range rounds(t) {
		// Either of the two may lead now.
		var token, child, grandchild int
		leader, follower, token, child, grandchild = awaitLeader(t, leader, follower, last)
		require.Greater(t, token, last, "round %d", round)
		last = token
		// On a busy machine a lease may end by itself. Then its guard and its command end, and the next term
		// may have begun.
		stat, err := stats(child)
		guard := 0
		if err == nil {
			guard, err = strconv.Atoi(stat[1])
			require.NoError(t, err)
		}
		if err != nil || stat[0] == "Z" || guard == os.Getpid() { // this process adopts what a guard leaves behind
			t.Logf("round %d, token %d: the term has ended by itself", round, token)
			continue
		}
		struck++
		who := []int{leader.cmd.Process.Pid, guard, child, grandchild}[draw.IntN(4)]
		how := []syscall.Signal{unix.SIGKILL, unix.SIGSTOP}[draw.IntN(2)]
		t.Logf("round %d, token %d: %v to %s", round, token, how, map[int]string{leader.cmd.Process.Pid: "elector", guard: "guard", child: "command", grandchild: "grandchild"}[who])
		if how == unix.SIGSTOP && who == guard {
			stop(t, who)
		} else if err := unix.Kill(who, how); !errors.Is(err, unix.ESRCH) {
			require.NoError(t, err)
		}
		if who == child || who == grandchild || how == unix.SIGSTOP && who != leader.cmd.Process.Pid {
			// Leadership need not move because of that: the elector is killed next.
			require.NoError(t, unix.Kill(leader.cmd.Process.Pid, unix.SIGKILL))
		}
		dead(t, soon, child, grandchild)
		_ = leader.cmd.Process.Kill()
		<-leader.done
		leader = contender(t, c)
	}
	require.Positive(t, struck, "rounds whose term lasted until it was disturbed")
}

func contender(t *testing.T, c *kfake.Cluster) *process {
	return neli(t, c, "run", "--", "sh", "-c", witness)
}

// awaitLeader waits until one of two processes has started its command with a token above last.
func awaitLeader(t *testing.T, a, b *process, last int) (leader, follower *process, token, child, grandchild int) {
	t.Helper()
	started := func(p *process) bool {
		lines := p.output()
		for i, l := range lines {
			require.NotContains(t, l, "overlap")
			if text, ok := strings.CutPrefix(l, "token "); ok && len(lines) > i+2 {
				var err error
				token, err = strconv.Atoi(text)
				require.NoError(t, err)
				_, err = fmt.Sscanf(lines[i+1]+" "+lines[i+2], "grandchild %d child %d", &grandchild, &child)
				require.NoError(t, err)
			}
		}
		return token > last
	}
	require.Eventually(t, func() bool {
		leader, follower = a, b
		if started(a) {
			return true
		}
		leader, follower = b, a
		return started(b)
	}, soon, 5*time.Millisecond)
	return leader, follower, token, child, grandchild
}
