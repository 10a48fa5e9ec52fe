package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// consul lock hides the command's exit code (hashicorp/consul#947, #1503).
func TestExitCodes(t *testing.T) {
	c := broker(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for want, args := range map[int][]string{
		0:   {"true"},
		1:   {"false"},
		7:   {"sh", "-c", "exit 7"},
		137: {"sh", "-c", "kill -9 $$"},
		143: {"sh", "-c", "kill -TERM $$"},
		127: {"/no/such/command"},
		126: {file},
	} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			t.Parallel()
			p := neli(t, c, append([]string{"run", "--group", fmt.Sprint("jobs", want), "--"}, args...)...)
			require.Equal(t, want, p.code())
		})
	}
	for name, args := range map[string][]string{
		"no command":      {"run"},
		"unknown flag":    {"run", "--nonsense", "--", "true"},
		"bad timeout":     {"run", "--timeout", "2h", "--", "true"},
		"bad drain":       {"run", "--drain", "-1s", "--", "true"},
		"bad wait":        {"run", "--wait", "-1s", "--", "true"},
		"drain too long":  {"run", "--drain", "25h", "--", "true"}, // too long for the library
		"bad listen":      {"run", "--listen", "nowhere", "--", "true"},
		"secret argument": {"run", "-X", "sasl.password=x", "--", "true"},
		"no such file":    {"run", "--config", "/no/such/file", "--", "true"},
		"no such verb":    {"walk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, 125, neli(t, c, args...).code())
		})
	}
	t.Run("no group", func(t *testing.T) {
		p := neliWith(t, os.Environ(), "run", "--", "true")
		require.Equal(t, 125, p.code())
		require.Contains(t, p.errors.String(), "--group")
	})
}

// The log says once how the command ended, whatever ended it. No busy machine ends a term of T = medium.
func TestEndOfTheCommandIsLoggedOnce(t *testing.T) {
	c := broker(t)
	for name, end := range map[string]struct {
		script, level, cause string
		signal               string
		logged, exit         int
	}{
		"exit 0":       {script: `exit 0`, level: "INFO", cause: "by itself"},
		"exit 3":       {script: `exit 3`, level: "INFO", cause: "by itself", logged: 3, exit: 3},
		"a signal":     {script: `kill -SEGV $$`, level: "INFO", cause: "killed by a signal", signal: " signal=SIGSEGV", logged: 139, exit: 139},
		"guard killed": {script: `kill -KILL $PPID; exec sleep 1000`, level: "ERROR", cause: "the guard process was killed", logged: 137, exit: 122},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := neli(t, c, "run", "--once", "--timeout", medium.String(), "--group", strings.ReplaceAll(name, " ", "-"), "--", "sh", "-c", `echo token $NELI_TOKEN; `+end.script)
			require.Equal(t, end.exit, p.code())
			log := p.errors.String()
			require.Equal(t, 1, strings.Count(log, "the command has ended"), log)
			require.Contains(t, log, fmt.Sprintf("level=%s msg=\"the command has ended\" code=%d cause=%q token=%s%s\n",
				end.level, end.logged, end.cause, p.says("token", 1), end.signal))
		})
	}
}

// consul lock mistakes the command's flags for its own (hashicorp/consul#1063).
func TestFlagsAfterTheCommandBelongToIt(t *testing.T) {
	c := broker(t)
	for i, args := range [][]string{{"run", "--", "printf", `%s;`, "-v", "--keep", "--", "-X"}, {"run", "printf", `%s;`, "-v", "--keep", "--", "-X"}} {
		p := neli(t, c, append([]string{args[0], "--group", fmt.Sprint("g", i)}, args[1:]...)...)
		require.Equal(t, 0, p.code())
		require.Equal(t, []string{"-v;--keep;--;-X;"}, p.output())
	}
}

// consul lock ends only the shell in between, and not the processes that it started
// (hashicorp/consul#2022, #873, #1692). Other signals do not reach even the shell (#1210, #2489).
func TestSignalsReachTheWholeGroup(t *testing.T) {
	c := broker(t)
	for _, s := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			p := neli(t, c, "run", "--timeout", medium.String(), "--group", fmt.Sprint("jobs", int(s)), "--", "sh", "-c", `trap 'echo asked; exit 9' TERM INT HUP QUIT; `+family)
			grandchild, child := p.pid("grandchild", 1), p.pid("child", 1)
			p.signal(s)
			require.Equal(t, 9, p.code(), "the command's own code")
			require.Contains(t, p.output(), "asked")
			require.False(t, alive(child))
			require.False(t, alive(grandchild))
		})
	}
}

// Signals that do not ask for the end are passed on and end nothing, so job control works. The shell
// starts its one program before the first signal: a shell whose child is stopped between vfork and exec
// waits for it in the kernel, and is not shown as stopped.
func TestOtherSignalsArePassedOn(t *testing.T) {
	p := neli(t, broker(t), "run", "--timeout", medium.String(), "--", "sh", "-c", `trap "" USR1 USR2; sleep 1000 & for s in USR1 USR2 WINCH CONT; do trap "echo got $s" $s; done; echo child $$; while :; do wait; done`)
	child := p.pid("child", 1)
	for n, s := range []syscall.Signal{unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH} {
		p.signal(s)
		require.Equal(t, strings.TrimPrefix(unix.SignalName(s), "SIG"), p.says("got", n+1))
	}
	p.signal(unix.SIGTSTP)
	require.Eventually(t, func() bool { return field(t, child, 0) == "T" }, soon, 5*time.Millisecond, "the command is stopped")
	p.signal(unix.SIGCONT)
	require.Equal(t, "CONT", p.says("got", 4))
	p.signal(unix.SIGTERM)
	require.Equal(t, 143, p.code())
}

// consul lock ignores signals until it has the lock (hashicorp/consul#4439).
func TestSignalsBeforeTheElection(t *testing.T) {
	c := broker(t)
	holder := neli(t, c, "run", "--timeout", long.String(), "--", "sh", "-c", family) // no busy machine ends its term
	holder.says("child", 1)
	for _, s := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT} {
		t.Run(s.String(), func(t *testing.T) {
			for name, p := range map[string]*process{"waiting": neli(t, c, "run", "--", "false"), "without a broker": neli(t, nil, "run", "--", "false")} {
				p.logs("msg=starting") // from now on it handles signals
				began := time.Now()
				p.signal(s)
				require.Equal(t, 0, p.code(), name)
				require.Less(t, time.Since(began), 20*time.Second, name)
			}
		})
	}
	require.True(t, alive(holder.pid("child", 1)))
}

// A command that ignores the signal is killed when the drain is over.
func TestDrainIsLimited(t *testing.T) {
	p := neli(t, broker(t), "run", "--timeout", medium.String(), "--drain", "1s", "--", "sh", "-c", `trap '' TERM; `+strings.ReplaceAll(family, "wait", "while :; do sleep 1; done"))
	grandchild, child := p.pid("grandchild", 1), p.pid("child", 1)
	began := time.Now()
	p.signal(unix.SIGTERM)
	require.Equal(t, 137, p.code())
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	require.False(t, alive(child) || alive(grandchild))
}

// consul lock ends the command 90 s after the loss (hashicorp/consul#9788), etcdctl
// lock never (etcd-io/etcd#7983).
//
// The command is killed a tenth of T before the lease is over. With T = long, that is enough time for this
// process to see the command dead.
func TestCommandIsDeadWhenTheLeaseIsOver(t *testing.T) {
	t.Parallel()
	c := broker(t)
	p := neli(t, c, "run", "--timeout", long.String(), "--", "sh", "-c", family)
	grandchild, child := p.pid("grandchild", 1), p.pid("child", 1)
	began := time.Now()
	c.Close()
	dead(t, soon, child, grandchild)
	require.Less(t, time.Since(began), long, "evidence was older than this when the broker went")
	p.signal(unix.SIGTERM)
	require.Contains(t, []int{0, 137}, p.code(), "it contends, or has just seen that the command was killed")
}

func TestOnce(t *testing.T) {
	c := broker(t)
	p := neli(t, c, "run", "--once", "--", "sh", "-c", family)
	p.says("child", 1)
	c.Close()
	require.Equal(t, 122, p.code())
}

// An elector that is killed, stopped or starved loses its command in time. No comparable tool handles that.
func TestElectorDies(t *testing.T) {
	for _, s := range []syscall.Signal{unix.SIGKILL, unix.SIGSTOP} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			p := neli(t, broker(t), "run", "--timeout", long.String(), "--", "sh", "-c", family)
			grandchild, child := p.pid("grandchild", 1), p.pid("child", 1)
			began := time.Now()
			p.signal(s)
			dead(t, soon, child, grandchild)
			require.Less(t, time.Since(began), long)
			if s == unix.SIGSTOP {
				p.signal(unix.SIGCONT)
				require.NotEqual(t, child, p.pid("child", 2), "it contends again")
			}
		})
	}
}

// If a guard dies, the command and its children die as well.
func TestGuardDies(t *testing.T) {
	p := neli(t, broker(t), "run", "--timeout", medium.String(), "--", "sh", "-c", family)
	grandchild, child := p.pid("grandchild", 1), p.pid("child", 1)
	guard := parent(t, child)
	require.Equal(t, p.cmd.Process.Pid, parent(t, guard))
	for _, s := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT} {
		require.NoError(t, unix.Kill(guard, s)) // as a supervisor does to all processes of a service
	}
	require.Never(t, func() bool { return !alive(guard) || !alive(child) }, 200*time.Millisecond, 10*time.Millisecond)
	require.NoError(t, unix.Kill(guard, unix.SIGKILL))
	dead(t, soon, child, grandchild)
	require.NotEqual(t, child, p.pid("child", 2), "it contends again")
}

// A stopped guard is resumed: if the elector died as well, nothing would end the command.
func TestStoppedGuardIsResumed(t *testing.T) {
	p := neli(t, broker(t), "run", "--timeout", medium.String(), "--drain", "1s", "--", "sh", "-c", family)
	grandchild, child := p.pid("grandchild", 1), p.pid("child", 1)
	guard := parent(t, child)
	for range 3 {
		stop(t, guard)
	}
	require.True(t, alive(child))
	p.signal(unix.SIGKILL)
	dead(t, soon, child, grandchild)
}

// Processes that the command leaves behind in its group do not outlive the lease.
func TestNothingIsLeftBehind(t *testing.T) {
	p := neli(t, broker(t), "run", "--", "sh", "-c", `sleep 1000 & echo grandchild $!`)
	require.Equal(t, 0, p.code())
	require.False(t, alive(p.pid("grandchild", 1)))
}

// When a command ends, the next one starts within round trips.
func TestHandOver(t *testing.T) {
	c := broker(t)
	file := filepath.Join(t.TempDir(), "end")
	a := neli(t, c, "run", "--timeout", long.String(), "--", "sh", "-c", `echo child $$; while [ ! -e `+file+` ]; do sleep 0.01; done; date +'ended %s.%N'; exit 3`)
	a.says("child", 1)
	b := neli(t, c, "run", "--timeout", long.String(), "--name", "b", "--", "sh", "-c", `date +'began %s.%N'`)
	require.Eventually(t, func() bool { return slices.Contains(membersOf(t, neli(t, c, "status", "--json")), "b") }, soon, time.Millisecond, "the next one waits")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Equal(t, 3, a.code())
	require.Equal(t, 0, b.code())
	var ended, began float64
	_, err := fmt.Sscan(a.says("ended", 1), &ended)
	require.NoError(t, err)
	_, err = fmt.Sscan(b.says("began", 1), &began)
	require.NoError(t, err)
	require.Greater(t, began, ended)
	require.Less(t, began-ended, long.Seconds()/2)
}

func TestWait(t *testing.T) {
	c := broker(t)
	holder := neli(t, c, "run", "--timeout", long.String(), "--name", "a", "--", "sh", "-c", family)
	holder.says("child", 1)
	p := neli(t, c, "run", "--wait", "3s", "--", "true")
	require.Equal(t, 124, p.code())
	require.Regexp(t, `not elected within 3s \(--wait\): "a" leads and was heard \S+ ago; it leads until `, p.errors.String())
}

// A host crashes while its command runs. The shortest accepted --wait outlasts the host's lease.
func TestShortestWaitOutlastsACrash(t *testing.T) {
	c := broker(t)
	holder := neli(t, c, "run", "--timeout", medium.String(), "--", "sh", "-c", family)
	child := holder.pid("child", 1)
	guard := parent(t, child)
	require.NoError(t, holder.cmd.Process.Kill())
	_ = unix.Kill(guard, unix.SIGKILL) // it may have ended by itself
	p := neli(t, c, "run", "--timeout", medium.String(), "--wait", (2 * medium).String(), "--", "true")
	require.Equal(t, 0, p.code())
}

func TestKeep(t *testing.T) {
	p := neli(t, broker(t), "run", "--keep", "--", "sh", "-c", `echo token $NELI_TOKEN; exit 4`)
	first, second := p.pid("token", 1), p.pid("token", 2)
	require.Greater(t, second, first, "another term")
	p.signal(unix.SIGTERM)
	require.Contains(t, []int{0, 4, 128 + 15}, p.code(), "between two runs, or in one, before its end or after")
}

// With etcdctl lock, an outer lock's variables win over an inner one's.
func TestEnvironmentOfTheCommand(t *testing.T) {
	c := broker(t)
	env := append(os.Environ(), "NELI_BOOTSTRAP="+c.ListenAddrs()[0], "NELI_TOKEN=outer", "NELI_GROUP=outer", "NELI_NAME=outer", "NELI_MEMBER=outer", "OTHER=kept")
	p := neliWith(t, env, "run", "--group", "inner", "--timeout", "1s", "--", "env")
	require.Equal(t, 0, p.code())
	got := map[string]string{}
	for _, l := range p.output() {
		name, value, _ := strings.Cut(l, "=")
		require.NotContains(t, got, name, "twice")
		got[name] = value
	}
	require.Equal(t, "inner", got["NELI_GROUP"])
	require.Equal(t, "inner.neli", got["NELI_TOPIC"])
	require.Equal(t, "0", got["NELI_ROLE"])
	require.Equal(t, "0", got["NELI_PARTITION"])
	require.Equal(t, "kept", got["OTHER"])
	require.Regexp(t, `^\d+$`, got["NELI_TOKEN"])
	require.NotEqual(t, "outer", got["NELI_NAME"])
	require.NotEqual(t, "outer", got["NELI_MEMBER"])
	// If the inner neli took its group from the outer one, it would wait for the outer one forever.
	require.Equal(t, 125, neliWith(t, env, "run", "--", "true").code())
}

// With --listen, neli run serves the page and the metrics as long as it runs, and no longer.
func TestListen(t *testing.T) {
	p := neli(t, broker(t), "run", "--timeout", long.String(), "--name", "ten", "--listen", "127.0.0.1:0", "--", "sh", "-c", family)
	p.says("child", 1)
	address := p.logged(`msg="serving the page and the metrics" address=(\S+)`)
	get := func(path string) (int, string) {
		r, err := http.Get("http://" + address + path)
		require.NoError(t, err)
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return r.StatusCode, string(body)
	}
	for path, want := range map[string]string{
		"/metrics":   `neli_is_leader{group="jobs"} 1`,
		"/leader":    `"leader":true`,
		"/standings": `"name":"ten"`,
		"/":          "this process",
	} {
		status, body := get(path)
		require.Equal(t, 200, status, path)
		require.Contains(t, body, want, path)
	}
	status, _ := get("/stepdown")
	require.NotEqual(t, 200, status, "it tells, and does nothing")

	second := neli(t, nil, "run", "--listen", address, "--", "true")
	require.Equal(t, 125, second.code(), "the address is taken")
	require.Contains(t, second.errors.String(), "--listen: ")

	stream, err := http.Get("http://" + address + "/events")
	require.NoError(t, err)
	defer stream.Body.Close()
	began := time.Now()
	p.signal(unix.SIGTERM)
	require.Equal(t, 143, p.code())
	require.Less(t, time.Since(began), 20*time.Second, "a stream holds nobody up")
	_, err = http.Get("http://" + address + "/leader")
	require.Error(t, err)
}
