package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"golang.org/x/sys/unix"

	library "github.com/goneli/neli"
	"github.com/goneli/neli/franz"
)

// wardT is T of members beside a sentinel. Half of it is enough, even on a busy machine, to tell a
// release within round trips from the end of a lease.
const wardT = 12 * time.Second

func init() { programs["member"] = beMember }

// wardVariable is the environment variable with T of a member, if it is not wardT.
const wardVariable = "NELI_TEST_T"

// beMember contends until it is killed. It reports when it leads, and takes orders.
func beMember() int {
	lasts := wardT
	if d, err := time.ParseDuration(os.Getenv(wardVariable)); err == nil {
		lasts = d
	}
	n, err := library.New(library.Config{KafkaConfig: library.KafkaConfigMap{"bootstrap.servers": os.Getenv("NELI_BOOTSTRAP")}, Provider: franz.Provider(),
		LeaderGroupID: os.Getenv("NELI_GROUP"), Name: os.Getenv("NELI_NAME"), HeartbeatTimeout: lasts,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	tick := time.NewTicker(lasts / 5000)
	led := false
	_, err = n.Background(func() {
		if leads := n.IsLeader(); leads != led {
			led = leads
			fmt.Println("leads", leads, time.Now().UnixNano())
		}
		<-tick.C
	})
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		switch orders.Text() {
		case "exec": // the same process is another program then
			sleep, err := exec.LookPath("sleep")
			if err == nil {
				err = syscall.Exec(sleep, []string{"sleep", "1000"}, nil)
			}
			fmt.Println("failed", err)
		case "close":
			fmt.Println("closed", closeUnixSockets())
		}
	}
	return 0
}

// closeUnixSockets closes the connection to the sentinel without the library's knowledge, and
// returns how many files it has closed.
func closeUnixSockets() (n int) {
	for fd := range 1024 {
		if a, err := unix.Getpeername(fd); err == nil {
			if _, is := a.(*unix.SockaddrUnix); is && unix.Close(fd) == nil {
				n++
			}
		}
	}
	return n
}

// member is a member that runs.
type member struct {
	*process
	name   string
	orders io.Writer
}

func startMember(t *testing.T, c *kfake.Cluster, group, name, socket string, change func(*exec.Cmd)) *member {
	t.Helper()
	m := &member{name: name}
	var own *os.File
	m.process = neliBy(t, func(cmd *exec.Cmd) {
		self, err := os.Executable()
		require.NoError(t, err)
		cmd.Path = self
		var r *os.File
		r, own, err = os.Pipe()
		require.NoError(t, err)
		cmd.Stdin = r
		t.Cleanup(func() { _ = r.Close(); _ = own.Close() })
		if change != nil {
			change(cmd)
		}
	}, append(environment(c), programVariable+"=member", "NELI_GROUP="+group, "NELI_NAME="+name, "NELI_SENTINEL="+socket))
	m.orders = own
	return m
}

func (m *member) order(text string) {
	m.t.Helper()
	_, err := fmt.Fprintln(m.orders, text)
	require.NoError(m.t, err)
}

// led waits until the member leads for the first time, and returns that time.
func (m *member) led() time.Time {
	m.t.Helper()
	at, err := strconv.ParseInt(m.says("leads true", 1), 10, 64)
	require.NoError(m.t, err)
	return time.Unix(0, at)
}

// leads reports whether the member has ever said that it leads.
func (m *member) leads() bool { return strings.Contains(strings.Join(m.output(), "\n"), "leads true") }

// noted reports whether a sentinel has logged the death of a member.
func (p *process) noted(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range strings.Lines(p.errors.String()) {
		if strings.Contains(line, "a member has died") && strings.Contains(line, "by_name="+name+" ") {
			return true
		}
	}
	return false
}

// notes waits until a sentinel has logged the death of a member.
func (p *process) notes(name string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return p.noted(name) }, soon, 5*time.Millisecond, "nobody noticed the death of %s", name)
}
