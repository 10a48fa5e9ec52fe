package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// terminal returns the two ends of a new terminal, which has the setting of "stty tostop" if tostop is true.
func terminal(t *testing.T, tostop bool) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = slave.Close() })
	if tostop {
		settings, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
		require.NoError(t, err)
		settings.Lflag |= unix.TOSTOP
		require.NoError(t, unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, settings))
	}
	return master, slave
}

// on starts a process in a session that has a terminal, which is also its standard input and error.
func on(slave *os.File) func(*exec.Cmd) {
	return func(c *exec.Cmd) {
		c.Stdin, c.Stderr = slave, slave
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}
}

// A command that would be stopped for touching the terminal would keep the lease for ever. It ends instead.
func TestNoTerminalStopsTheCommand(t *testing.T) {
	c := broker(t)
	for name, script := range map[string]string{
		"reads":               `cat; exit 7`,
		"reads /dev/tty":      `read x </dev/tty || exit 7`,
		"sets it":             `stty -echo || exit 7`,
		"sets it by output":   `stty -echo <&2; exit 7`,
		"writes under tostop": `echo output >&2; exit 7`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, slave := terminal(t, true)
			group := strings.NewReplacer(" ", "-", "/", "-").Replace(name)
			require.Equal(t, 7, neliBy(t, on(slave), environment(c), "run", "--group", group, "--timeout", medium.String(), "--", "sh", "-c", script).code())
		})
	}
}

// neli logs to a terminal under "stty tostop" even if it runs in the background, as with "neli run … &".
func TestNeliLogsFromTheBackground(t *testing.T) {
	c := broker(t)
	_, slave := terminal(t, true)
	p := neliBy(t, func(cmd *exec.Cmd) {
		on(slave)(cmd)
		within(cmd, "set -m") // each job gets a process group of its own
		cmd.Args[2] = strings.Replace(cmd.Args[2], `exec "$0" "$@"`, `"$0" "$@" & wait $!`, 1)
	}, environment(c), "run", "--log-level", "debug", "--timeout", medium.String(), "--", "sh", "-c", `echo led; exit 7`)
	require.Equal(t, 7, p.code())
}

// A person at a terminal is told once why the command does not start.
func TestTerminalShowsStandingBy(t *testing.T) {
	c := broker(t)
	neli(t, c, "run", "--name", "first", "--timeout", long.String(), "--", "sh", "-c", family).pid("child", 1)
	master, slave := terminal(t, false)
	p := neliBy(t, on(slave), environment(c), "run", "--log-level", "error", "--", "true")
	line, err := bufio.NewReader(master).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "neli: standing by: first leads the group jobs\r\n", line)
	p.signal(unix.SIGTERM)
	require.Equal(t, 0, p.code())
}

// If standard input is a pipe or a file, unlike a terminal, it is passed on to the command.
func TestInputIsPassedOn(t *testing.T) {
	p := neliBy(t, func(cmd *exec.Cmd) { cmd.Stdin = strings.NewReader("words\n") }, environment(broker(t)), "run", "--", "cat")
	require.Equal(t, 0, p.code())
	require.Equal(t, []string{"words"}, p.output())
}

// The log says that a command keeps the lease and does nothing, and when it goes on.
func TestStopThatNeliDidNotSendIsLogged(t *testing.T) {
	p := neli(t, broker(t), "run", "--timeout", medium.String(), "--", "sh", "-c", `trap 'exit 3' TERM; echo child $$; sleep 1000 & kill -STOP $$; echo again $$; while :; do wait; done`)
	child := p.pid("child", 1)
	p.logs(`level=WARN msg="the command was stopped, not by neli: it keeps leadership and does nothing" signal=SIGSTOP process_group=` + fmt.Sprint(child))
	require.NoError(t, unix.Kill(child, unix.SIGCONT))
	p.logs(`msg="the command goes on"`)
	p.says("again", 1)
	p.signal(unix.SIGTSTP)
	require.Eventually(t, func() bool { return field(t, child, 0) == "T" }, soon, tick)
	p.signal(unix.SIGTERM)
	require.Equal(t, 3, p.code())
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Equal(t, 1, strings.Count(p.errors.String(), "the command was stopped"), "neli passed on TSTP")
}

// A stopped command gets the signal to end, whatever the reason for the end. Its trap runs long before --drain is
// over. Its shells start no program after the first signal: see TestOtherSignalsArePassedOn.
func TestStoppedCommandIsToldToFinish(t *testing.T) {
	c := broker(t)
	const script = `trap 'echo bye; exit 3' TERM INT HUP QUIT; sh -c 'trap "echo bye too; exit" TERM INT HUP QUIT; sleep 1000 & echo grandchild $$; while :; do wait; done' & echo child $$; while :; do wait; done`
	for _, s := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, 0} {
		t.Run(unix.SignalName(s), func(t *testing.T) {
			t.Parallel()
			group := fmt.Sprint("jobs", int(s))
			p := neli(t, c, "run", "--group", group, "--timeout", medium.String(), "--drain", "1h", "--allow-requests", "--once", "--", "sh", "-c", script)
			child, grandchild := p.pid("child", 1), p.pid("grandchild", 1)
			p.signal(unix.SIGTSTP)
			for _, pid := range []int{child, grandchild} {
				require.Eventually(t, func() bool { return field(t, pid, 0) == "T" }, soon, tick)
			}
			want := 3
			if s != 0 {
				p.signal(s)
			} else {
				want = 122
				require.Equal(t, 0, neli(t, c, "step-down", "--group", group).code())
			}
			require.Equal(t, want, p.code())
			require.Contains(t, p.output(), "bye")
		})
	}
}
