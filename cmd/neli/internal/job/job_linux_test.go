package job

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goneli/neli"
	"github.com/goneli/neli/cmd/neli/internal/guard"
	"github.com/goneli/neli/nelitest"
)

// TestMain is also the main function of the guards' processes.
func TestMain(m *testing.M) {
	if code, ok := guard.Main(os.Args[1:]); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// soon is the longest that any step may take on a busy machine.
const soon = 40 * time.Second

// runs runs a shell script under a Neli that has no rivals, until the test ends.
func runs(t *testing.T, script string) {
	t.Helper()
	b := nelitest.NewBroker(nelitest.Options{})
	t.Cleanup(b.Close)
	n, err := neli.New(neli.Config{LeaderGroupID: "jobs", HeartbeatTimeout: time.Second, Provider: b.Provider("alice")})
	require.NoError(t, err)
	signals, ended := make(chan os.Signal, 1), make(chan error, 1)
	go func() {
		_, err := Run(n, Options{Command: []string{"sh", "-c", script}, Env: os.Environ(), Drain: time.Second, Log: slog.New(slog.DiscardHandler)}, signals)
		ended <- err
	}()
	t.Cleanup(func() {
		signals <- unix.SIGTERM
		require.NoError(t, <-ended)
		require.NoError(t, n.Close())
	})
}

// The log says how a command ended: by itself, or by which signal.
func TestEndOfTheCommandIsLogged(t *testing.T) {
	for script, want := range map[string]string{
		"exit 3":        `msg="the command has ended" code=3 cause="by itself"`,
		"kill -SEGV $$": `msg="the command has ended" code=139 cause="killed by a signal" token=`,
	} {
		b := nelitest.NewBroker(nelitest.Options{})
		t.Cleanup(b.Close)
		n, err := neli.New(neli.Config{LeaderGroupID: "jobs", HeartbeatTimeout: time.Second, Provider: b.Provider("alice")})
		require.NoError(t, err)
		var out bytes.Buffer
		_, err = Run(n, Options{Command: []string{"sh", "-c", script}, Env: os.Environ(), Drain: time.Second,
			Log: slog.New(slog.NewTextHandler(&out, nil))}, nil)
		require.NoError(t, err)
		require.NoError(t, n.Close())
		require.Contains(t, out.String(), want)
		require.Equal(t, strings.HasPrefix(script, "kill"), strings.Contains(out.String(), " signal=SIGSEGV\n"))
	}
}

// Leadership may be lost before the guard has started the command. The log must not say then that
// the guard was killed.
func TestLeaseThatEndsAtOnceIsLogged(t *testing.T) {
	b := nelitest.NewBroker(nelitest.Options{})
	t.Cleanup(b.Close)
	n, err := neli.New(neli.Config{LeaderGroupID: "jobs", HeartbeatTimeout: time.Second, Provider: b.Provider("alice")})
	require.NoError(t, err)
	var out bytes.Buffer
	o := Options{Command: []string{"sleep", "1000"}, Env: os.Environ(), Drain: time.Second, Once: true, Log: slog.New(slog.NewTextHandler(&out, nil))}
	o.Guard = func() (*os.File, func()) {
		b.CutOff("alice", nelitest.LinkAll)
		require.Eventually(t, func() bool { return !n.IsLeader() }, soon, time.Millisecond)
		return nil, func() {}
	}
	code, err := Run(n, o, nil)
	require.EqualError(t, err, "leadership was lost")
	require.Equal(t, CodeLost, code)
	b.Restore("alice", nelitest.LinkAll)
	require.NoError(t, n.Close())
	require.Contains(t, out.String(), `level=WARN msg="the command has ended" code=137 cause="leadership was lost"`)
}

// A command that was stopped is continued so that it handles the signal to finish, instead of being
// killed when the drain is over.
func TestStoppedCommandIsContinuedToFinish(t *testing.T) {
	b := nelitest.NewBroker(nelitest.Options{})
	t.Cleanup(b.Close)
	n, err := neli.New(neli.Config{LeaderGroupID: "jobs", HeartbeatTimeout: 20 * time.Second, Provider: b.Provider("alice")})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "pid")
	signals, code := make(chan os.Signal, 1), make(chan int, 1)
	go func() {
		c, _ := Run(n, Options{Command: []string{"sh", "-c", `trap "exit 3" TERM; echo $$ >` + file + `; kill -STOP $$; sleep 1000 & wait`}, Env: os.Environ(),
			Drain: 2 * soon, Log: slog.New(slog.DiscardHandler)}, signals)
		code <- c
	}()
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(file)
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat")
		return err == nil && strings.Contains(string(stat), ") T ")
	}, soon, time.Millisecond, "it stops")
	signals <- unix.SIGTERM
	ended := false
	require.Eventually(t, func() bool {
		ended = ended || len(code) > 0
		return ended
	}, soon, time.Millisecond, "it has not finished")
	require.Equal(t, 3, <-code)
	require.NoError(t, n.Close())
}

// In a session of its own the command has no terminal that could stop it.
func TestCommandRunsInASessionWithoutTerminal(t *testing.T) {
	b := nelitest.NewBroker(nelitest.Options{})
	t.Cleanup(b.Close)
	n, err := neli.New(neli.Config{LeaderGroupID: "jobs", HeartbeatTimeout: 2 * time.Second, Provider: b.Provider("alice")})
	require.NoError(t, err)
	own, err := unix.Getsid(0)
	require.NoError(t, err)
	code, err := Run(n, Options{Command: []string{"sh", "-c", `read pid name state parent group session terminal rest </proc/$$/stat
		[ $session != ` + strconv.Itoa(own) + ` ] || exit 7; [ $terminal = 0 ] || exit 8`}, Env: os.Environ(), Drain: time.Second, Log: slog.New(slog.DiscardHandler)}, nil)
	require.NoError(t, err)
	require.NotEqual(t, 7, code, "the session of neli")
	require.Zero(t, code, "a terminal")
	require.NoError(t, n.Close())
}

// The command kills its guard. This process adopts the processes that left the group, and reaps them. The
// orphan outlives the guard, so that the guard cannot reap it.
func TestOrphansAreReaped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	runs(t, strings.ReplaceAll(`[ -e FILE ] && exec sleep 1000
		setsid sh -c 'echo $$ >FILE.new; mv FILE.new FILE; while kill -0 '$PPID' 2>/dev/null; do sleep 0.1; done' &
		while [ ! -e FILE ]; do sleep 0.01; done
		kill -KILL $PPID
		exec sleep 1000`, "FILE", file))
	orphan := 0
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		if err == nil {
			orphan, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err == nil
	}, soon, time.Millisecond)
	require.Eventually(t, func() bool { return errors.Is(unix.Kill(orphan, 0), unix.ESRCH) }, soon, time.Millisecond, "the orphan is reaped")
}

// A command may outlive its elector. So the elector tells the sentinel of a command before it
// starts, and again when nothing is left of it.
func TestSentinelIsToldOfACommand(t *testing.T) {
	b := nelitest.NewBroker(nelitest.Options{})
	t.Cleanup(b.Close)
	n, err := neli.New(neli.Config{LeaderGroupID: "jobs", HeartbeatTimeout: 12 * time.Second, Provider: b.Provider("alice")}) // a busy machine must renew the lease in time
	require.NoError(t, err)
	dir := t.TempDir()
	started, ended := filepath.Join(dir, "started"), filepath.Join(dir, "ended")
	var told, over int
	o := Options{Command: []string{"sh", "-c", "touch " + started + "; sleep 0.2; touch " + ended}, Env: os.Environ(), Drain: time.Second, Log: slog.New(slog.DiscardHandler)}
	o.Guard = func() (*os.File, func()) {
		require.NoFileExists(t, started, "the sentinel knows of the command")
		told++
		return nil, func() {
			over++
			require.FileExists(t, ended, "the command runs yet")
		}
	}
	_, err = Run(n, o, nil)
	require.NoError(t, err)
	require.NoError(t, n.Close())
	require.Equal(t, 1, told, "the sentinel knows of the command")
	require.Equal(t, 1, over)
}

// With --keep, a signal to end may come when the command has just ended, so that it reaches no command.
// There must be no other run after it.
func TestSignalToEndAfterTheCommandPreventsAnotherRun(t *testing.T) {
	for name, signalled := range map[string]func(c *contest, ctx context.Context){
		"it was meant for the command": func(c *contest, _ context.Context) {
			c.forward(unix.SIGTERM)
			c.belated()
		},
		"no command runs any more": func(c *contest, ctx context.Context) {
			signals := make(chan os.Signal)
			go func() { signals <- unix.SIGTERM }()
			c.dispatch(ctx, signals, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newContest(nil, Options{Keep: true}, nil)
			ctx, stop := context.WithCancel(t.Context())
			c.stop = func() {} // Lead has not ended yet
			c.finish(result{again: true})
			c.stop = stop
			signalled(c, ctx)
			require.Equal(t, result{}, *c.outcome, "it does not contend again")
			c.finish(result{again: true})
			require.Equal(t, result{}, *c.outcome)
		})
	}
}

// With --keep, only a signal to end keeps the next run from beginning.
func TestHarmlessSignalAfterTheCommandDoesNotPreventAnotherRun(t *testing.T) {
	c := newContest(nil, Options{Keep: true}, nil)
	c.stop = func() {} // Lead has not ended yet
	c.finish(result{again: true})
	ctx, stop := context.WithCancel(t.Context())
	signals := make(chan os.Signal)
	go func() {
		signals <- unix.SIGUSR1
		signals <- unix.SIGWINCH // so the first signal was handled
		stop()
	}()
	c.dispatch(ctx, signals, nil)
	require.Equal(t, result{again: true}, *c.outcome)
}

// A command may take seconds to start, and signals wait for it meanwhile. A signal is dropped only if one of
// its kind waits already. Of such signals the newest counts: CONT after TSTP.
func TestEachKindOfSignalWaitsWhileTheCommandStarts(t *testing.T) {
	c := newContest(nil, Options{}, nil)
	ctx, stop := context.WithCancel(t.Context())
	command := make(chan struct{}, 1)
	require.True(t, c.begin(command))
	signals := make(chan os.Signal)
	go func() {
		defer stop()
		signals <- unix.SIGCONT
		for range 40 {
			signals <- unix.SIGWINCH
		}
		for _, s := range []os.Signal{unix.SIGTSTP, unix.SIGCONT, unix.SIGTERM, unix.SIGUSR1} {
			signals <- s
		}
	}()
	c.dispatch(ctx, signals, nil)
	<-command
	require.Equal(t, []os.Signal{unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT, unix.SIGTERM, unix.SIGUSR1}, c.take())
	require.Empty(t, c.take())
}

func TestIgnoredSignalsStayIgnored(t *testing.T) {
	require.Contains(t, Signals(), os.Signal(unix.SIGWINCH))
	signal.Ignore(unix.SIGWINCH)
	defer signal.Reset(unix.SIGWINCH)
	require.NotContains(t, Signals(), os.Signal(unix.SIGWINCH))
	require.Contains(t, Signals(), os.Signal(unix.SIGTERM))
}

// A stopped guard reads nothing. An order that fits into its pipe is there when it goes on. One that does
// not fit is dropped as a whole, and nobody waits for it. No deadline decides that, since a process that
// gets no processor for a while must not lose a signal.
func TestOrderIsWrittenWholeOrNotAtAll(t *testing.T) {
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	conn, err := out.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, conn.Control(func(fd uintptr) { _, err = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 4096) }))
	require.NoError(t, err)
	order, began := guard.Deliver(unix.SIGTSTP), time.Now()
	for range 3000 {
		tell(out, order)
	}
	require.Less(t, time.Since(began), 20*time.Second, "it waits for room") // at 10 ms each it would take longer
	require.NoError(t, out.Close())
	tell(out, order) // an order for a command that has ended
	got, err := io.ReadAll(in)
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat(order, 4096/len(order)), got)
}
