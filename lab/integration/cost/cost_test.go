// Package cost measures what an idle group costs on a real broker: the share of a core that a process uses if it holds
// or follows many partitions, with a beat each second.
package cost

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/stretchr/testify/require"
)

// The measured processes run this binary, and the environment tells them what to do. Each client is in a process of its
// own, as it is for users.
const (
	envRole       = "NELI_COST_ROLE" // holder or follower
	envBroker     = "NELI_COST_BROKER"
	envGroup      = "NELI_COST_GROUP"
	envPartitions = "NELI_COST_PARTITIONS"
	measured      = 15 * time.Second
	settling      = 10 * time.Second // booting costs more, once
)

func TestMain(m *testing.M) {
	if os.Getenv(envRole) == "" {
		os.Exit(m.Run())
	}
	if err := process(); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// process contends for all partitions. It prints the CPU time that it used in the measured time, which begins when it
// leads all of them, or, for a follower, when it is told to.
func process() error {
	m, err := strconv.Atoi(os.Getenv(envPartitions))
	if err != nil {
		return err
	}
	n, err := neli.New(neli.Config{
		KafkaConfig:   neli.KafkaConfigMap{"bootstrap.servers": os.Getenv(envBroker)},
		LeaderGroupID: os.Getenv(envGroup),
		Nomination:    neli.NominationOpen,
		Roles:         m,
		Partitions:    m,
	})
	if err != nil {
		return err
	}
	defer n.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_ = n.Lead(ctx, func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); return nil })
	}()
	if os.Getenv(envRole) == "holder" {
		for len(slices.Collect(n.Led())) < m {
			<-time.After(50 * time.Millisecond)
		}
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		<-time.After(settling)
		before := used()
		<-time.After(measured)
		fmt.Println(int64(used()-before), len(slices.Collect(n.Led())))
	}
	return nil
}

func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// inMemory returns a directory in memory for the broker's data, or "" if there is none. With a thousand partitions on
// disk, a small broker was seen to stall for longer than T half a minute after the topic was created, probably since
// the kernel then writes all files back at once. In memory it did not stall.
func inMemory(b *testing.B) string {
	dir, err := os.MkdirTemp("/dev/shm", "neli-cost-")
	if err != nil {
		return ""
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// client is a process that is measured.
type client struct {
	in  interface{ Write([]byte) (int, error) }
	out *bufio.Scanner
}

func start(b *testing.B, role, broker, group string, partitions int) *client {
	exe, err := os.Executable()
	require.NoError(b, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envRole+"="+role, envBroker+"="+broker, envGroup+"="+group,
		envPartitions+"="+strconv.Itoa(partitions))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() {
		_ = in.Close() // ends it
		_ = cmd.Wait()
	})
	c := &client{in: in, out: bufio.NewScanner(out)}
	require.Equal(b, "ready", c.line(b))
	return c
}

func (c *client) line(b *testing.B) string {
	require.True(b, c.out.Scan(), "the measured process has ended")
	return c.out.Text()
}

// BenchmarkCost reports percent of one core for a holder and a follower. Its
// time per operation means nothing.
func BenchmarkCost(b *testing.B) {
	broker := os.Getenv(kafkatest.EnvBootstrap)
	if broker == "" {
		broker = kafkatest.Run(b, kafkatest.Options{Dir: inMemory(b)}).Bootstrap()
	}
	for _, m := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("partitions=%d", m), func(b *testing.B) {
			group := fmt.Sprintf("cost-%d-%d", m, time.Now().UnixNano())
			clients := []*client{start(b, "holder", broker, group, m), start(b, "follower", broker, group, m)}
			for b.Loop() {
				for _, c := range clients {
					_, err := c.in.Write([]byte("go\n"))
					require.NoError(b, err)
				}
				for i, role := range []string{"holder", "follower"} {
					var cpu time.Duration
					var led int
					_, err := fmt.Sscan(clients[i].line(b), (*int64)(&cpu), &led)
					require.NoError(b, err)
					require.Equal(b, []int{m, 0}[i], led, "a term was lost")
					b.ReportMetric(100*cpu.Seconds()/measured.Seconds(), role+"-%core")
				}
			}
		})
	}
}
