package integration

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goneli/neli/lab/witness"
)

// Tests of the harness itself: its reports are right, and it leaves nothing behind. They need no broker: nothing listens
// at the address that these members use.

const nobodyThere = "127.0.0.1:1"

// lonely returns the parameters of a member that finds no broker.
func lonely(name string) memberParams {
	return memberParams{Name: name, Contenders: []contenderParams{{
		Bootstrap: nobodyThere, Group: name, Topic: name, Timeout: time.Second, Roles: 2,
	}}}
}

func TestMemberIsWatched(t *testing.T) {
	_, err := members() // for as long as this process lives
	require.NoError(t, err)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	m := startMember(t, t.TempDir(), lonely("watched"))
	defer m.Kill()
	m.sampledMore(20)

	asleep := m.suspend()
	waitPast(t, witness.Now()+200*time.Millisecond)
	woken := m.wake()
	m.sampledMore(20)
	killed := m.Kill()

	// All samples up to SIGKILL are there, and there are none for the time of the suspension.
	for role := range 2 {
		runs := m.Samples.Runs().Of(0, role)
		require.GreaterOrEqual(t, len(runs), 2)
		var idle []witness.Span
		for _, r := range runs {
			assert.Equal(t, witness.No, r.Answer)
			assert.LessOrEqual(t, r.First.Before, r.First.After)
			assert.LessOrEqual(t, r.First.After, r.Last.After)
			assert.Less(t, r.Gap, witness.BreakAfter+time.Millisecond)
			idle = append(idle, r.Proven())
		}
		for _, s := range idle {
			assert.False(t, s.From < asleep && s.To > woken, "%v goes on while it was suspended", s)
		}
		last := runs[len(runs)-1].Last
		assert.Greater(t, last.Before, woken)
		assert.Less(t, last.Before, m.Died())
		assert.Less(t, killed, m.Died())
	}
	assert.Empty(t, m.events())
	assert.Positive(t, m.logged("msg=starting"))
	require.NoError(t, m.Samples.Close())
}

func TestMemberClosesWithoutBroker(t *testing.T) {
	m := startMember(t, t.TempDir(), lonely("closes"))
	defer m.Kill()
	m.sampledMore(5)
	m.close(patience)
	assert.False(t, m.Running())
	assert.Len(t, m.events("closed"), 1)
	assert.Contains(t, m.awaits("ended", patience).Error, "closed")
}

// envParent makes the test binary act as a parent that ends badly.
const envParent = "NELI_TEST_PARENT"

// However the test process ends, no member outlives it, neither one that reads commands nor one that is suspended.
func TestMembersDieWithTheirParent(t *testing.T) {
	if end := os.Getenv(envParent); end != "" {
		parentOfMembers(t, end)
	}
	for _, end := range []string{"killed", "panics"} {
		t.Run(end, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestMembersDieWithTheirParent$")
			// A killed process leaves its t.TempDir behind, so it must lie in this test's.
			cmd.Env = append(os.Environ(), envParent+"="+end, "TMPDIR="+t.TempDir())
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			defer func() { _ = cmd.Process.Kill() }()
			var pids []int
			for lines := bufio.NewScanner(out); len(pids) < 2 && lines.Scan(); {
				var pid int
				if n, _ := fmt.Sscanf(lines.Text(), "member %d", &pid); n == 1 {
					pids = append(pids, pid)
				}
			}
			require.Len(t, pids, 2)
			if end == "killed" {
				require.NoError(t, cmd.Process.Kill())
			}
			_ = cmd.Wait()
			for i, pid := range pids {
				if i == 1 && runtime.GOOS != "linux" {
					_ = syscall.Kill(pid, syscall.SIGKILL) // suspended, it notices nothing, and no kernel but Linux ends it
					continue
				}
				waitUntil(t, patience, fmt.Sprintf("process %d is gone", pid), func() bool { return !processLives(pid) })
			}
		})
	}
}

// processLives reports whether a process runs. Zombies do not count: in many containers init never reaps them.
func processLives(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// parentOfMembers starts members, prints their process ids, and ends badly.
func parentOfMembers(t *testing.T, end string) {
	dir := t.TempDir()
	for _, name := range []string{"awake", "asleep"} {
		m := startMember(t, dir, lonely(name))
		m.sampledMore(5)
		if name == "asleep" {
			m.suspend()
		}
		fmt.Printf("member %d\n", m.Pid())
	}
	if end == "panics" {
		panic("as a test may")
	}
	select {}
}
