// Package footprint measures the cost of a program that only uses the library, with each Kafka client and without a
// broker: the size of its binary, the modules in it, its start, its memory and its threads. The programs are commands
// of their own, since a binary contains its imports. For comparison, it also builds programs that elect a leader
// among their members in other ways.
package footprint

import (
	"bufio"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/goneli/neli/bench/footprint/program"
	"github.com/goneli/neli/bench/peers"
	"github.com/goneli/neli/testkit/kafkatest"
	"github.com/goneli/neli/testkit/pause"
)

// Usage is what a program costs.
type Usage struct {
	Client           string
	Binary, Stripped int64         // bytes
	Modules          int           // number of modules in it, without this project's
	Start            time.Duration // from its start until it knows who leads; the median; 0: it is only built
	Memory           uint64        // resident, in bytes, after some time on standby; the median
	Threads          int
}

// standBy is how long a program is on standby before its memory is measured.
const standBy = 5 * time.Second

// Programs lists the programs, the environments for building them, and what they need to run: nothing for those that
// are only built.
var Programs = []struct{ Name, Env, Needs string }{{"default", "CGO_ENABLED=1", needsKafka}, {"franz", "CGO_ENABLED=0", needsKafka},
	{"peers", "CGO_ENABLED=0", needsHosts}, {"raft", "CGO_ENABLED=0", ""}, {"etcd", "CGO_ENABLED=0", ""}}

const (
	needsKafka = "kafka"
	needsHosts = "hosts"
)

// Measure builds the programs from the sources in the working directory, and starts
// each n times, in turn, beside one that leads.
func Measure(ctx context.Context, place peers.Place, n int) ([]Usage, error) {
	usages := make([]Usage, len(Programs))
	for i, p := range Programs {
		usages[i].Client = p.Name
		for _, b := range []struct {
			size  *int64
			flags string
		}{{&usages[i].Stripped, "-s -w"}, {&usages[i].Binary, ""}} { // the last one is run
			var err error
			if *b.size, usages[i].Modules, err = build(ctx, place, p.Name, p.Env, b.flags); err != nil {
				return nil, err
			}
		}
	}
	kafka, err := peers.StartKafka(ctx, place, 1)
	if err != nil {
		return nil, err
	}
	defer kafka.Stop()
	hosts, err := kafkatest.FreeAddrs(peers.Size)
	if err != nil {
		return nil, err
	}
	servers := map[string]string{needsKafka: kafka.Bootstrap(), needsHosts: strings.Join(hosts, ",")}
	// One program leads. With peers, there are as many as there are log hosts, which are inside them.
	leaders := []*exec.Cmd{command(place, "default", servers[needsKafka])}
	for i := range hosts {
		leaders = append(leaders, command(place, "peers", servers[needsHosts], fmt.Sprint(i)))
	}
	end, err := lead(ctx, leaders)
	defer end()
	if err != nil {
		return nil, err
	}
	samples := make([][]sample, len(Programs))
	for range n {
		for i, p := range Programs {
			if p.Needs == "" {
				continue
			}
			s, err := once(ctx, command(place, p.Name, servers[p.Needs]))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.Name, err)
			}
			samples[i] = append(samples[i], s)
		}
	}
	for i, s := range samples {
		if len(s) > 0 {
			usages[i].summarise(s)
		}
	}
	return usages, nil
}

// lead starts programs, and waits until each knows who leads. end ends them; call it even after an error.
func lead(ctx context.Context, programs []*exec.Cmd) (end func(), err error) {
	var all []*running
	end = func() {
		for _, r := range all {
			r.end()
		}
	}
	for _, cmd := range programs {
		r, err := start(cmd)
		if err != nil {
			return end, err
		}
		all = append(all, r)
	}
	for _, r := range all {
		if err := r.knows(ctx); err != nil {
			return end, err
		}
	}
	return end, nil
}

// build returns the size of a program, and the number of modules in it that are not this project's.
func build(ctx context.Context, place peers.Place, name, env, flags string) (size int64, modules int, err error) {
	out := filepath.Join(place.Dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags="+flags, "-o", out, "./footprint/"+name)
	cmd.Env = append(os.Environ(), env)
	if said, err := cmd.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("building %s: %w\n%s", name, err, said)
	}
	info, err := os.Stat(out)
	if err != nil {
		return 0, 0, err
	}
	built, err := buildinfo.ReadFile(out)
	if err != nil {
		return 0, 0, err
	}
	for _, m := range built.Deps {
		if !strings.HasPrefix(m.Path, project) {
			modules++
		}
	}
	return info.Size(), modules, nil
}

// project is the prefix of the paths of this project's modules.
const project = "github.com/goneli/neli"

// running is a program that runs.
type running struct {
	cmd   *exec.Cmd
	in    io.Closer
	lines *bufio.Scanner
	began time.Time
}

// command returns a program's command, with the servers' addresses, the group, and the log host inside it.
func command(place peers.Place, name, servers string, host ...string) *exec.Cmd {
	return exec.Command(filepath.Join(place.Dir, name), append([]string{servers, "footprint"}, host...)...)
}

func start(cmd *exec.Cmd) (*running, error) {
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r := &running{cmd: cmd, in: in, lines: bufio.NewScanner(out), began: time.Now()}
	return r, cmd.Start()
}

// knows waits until the program knows who leads, at most a minute.
func (r *running) knows(ctx context.Context) error {
	defer time.AfterFunc(time.Minute, func() { _ = r.cmd.Process.Kill() }).Stop()
	if !r.lines.Scan() || r.lines.Text() != program.Knows {
		return errors.Join(errors.New("it does not come to know who leads"), r.lines.Err(), ctx.Err())
	}
	return nil
}

func (r *running) end() {
	_ = r.in.Close()
	_ = r.cmd.Wait()
}

// sample is one life of a program.
type sample struct {
	start   time.Duration
	memory  uint64
	threads int
}

func once(ctx context.Context, cmd *exec.Cmd) (s sample, err error) {
	r, err := start(cmd)
	if err != nil {
		return s, err
	}
	defer r.end()
	if err := r.knows(ctx); err != nil {
		return s, err
	}
	s.start = time.Since(r.began)
	if err := pause.For(ctx, standBy); err != nil {
		return s, err
	}
	p, err := procfs.NewProc(r.cmd.Process.Pid)
	if err != nil {
		return s, err
	}
	status, err := p.NewStatus()
	if err != nil {
		return s, err
	}
	stat, err := p.Stat()
	s.memory, s.threads = status.VmRSS, stat.NumThreads
	return s, err
}
