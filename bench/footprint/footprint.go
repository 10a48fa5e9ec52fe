package footprint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/prometheus/procfs"

	"github.com/goneli/neli/bench/peers"
	"github.com/goneli/neli/bench/trial"
)

// Usage is what a program costs.
type Usage struct {
	Client           string
	Binary, Stripped int64         // bytes
	Start            time.Duration // from its start until it knows who leads; the median
	Memory           uint64        // resident, in bytes, after it has stood by for a while; the median
	Threads          int
}

// standBy is for how long a program stands by before its memory is looked at.
const standBy = 5 * time.Second

// Clients are the programs, and the environment that they are built with.
var Clients = []struct{ Name, Env string }{{"default", "CGO_ENABLED=1"}, {"franz", "CGO_ENABLED=0"}}

// Measure builds the programs from the sources in the working directory, and starts
// each n times, in turn, beside one that leads.
func Measure(ctx context.Context, place peers.Place, n int) ([]Usage, error) {
	kafka, err := peers.StartKafka(ctx, place, 1)
	if err != nil {
		return nil, err
	}
	defer kafka.Stop()
	usages := make([]Usage, len(Clients))
	samples := make([][]sample, len(Clients))
	for i, c := range Clients {
		usages[i].Client = c.Name
		for _, b := range []struct {
			size  *int64
			flags string
		}{{&usages[i].Stripped, "-s -w"}, {&usages[i].Binary, ""}} { // the last one is run
			if *b.size, err = build(ctx, place, c.Name, c.Env, b.flags); err != nil {
				return nil, err
			}
		}
	}
	leader, err := start(place, Clients[0].Name, kafka.Bootstrap())
	if err != nil {
		return nil, err
	}
	defer leader.end()
	if err := leader.knows(ctx); err != nil {
		return nil, err
	}
	for range n {
		for i, c := range Clients {
			s, err := once(ctx, place, c.Name, kafka.Bootstrap())
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			samples[i] = append(samples[i], s)
		}
	}
	for i := range usages {
		usages[i].summarise(samples[i])
	}
	return usages, nil
}

func build(ctx context.Context, place peers.Place, name, env, flags string) (int64, error) {
	out := filepath.Join(place.Dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags="+flags, "-o", out, "./footprint/"+name)
	cmd.Env = append(os.Environ(), env)
	if said, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building %s: %w\n%s", name, err, said)
	}
	info, err := os.Stat(out)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// running is a program.
type running struct {
	cmd   *exec.Cmd
	in    io.Closer
	lines *bufio.Scanner
	began time.Time
}

func start(place peers.Place, name, bootstrap string) (*running, error) {
	cmd := exec.Command(filepath.Join(place.Dir, name), bootstrap, "footprint")
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

// knows waits until the program knows who leads, for a minute at most.
func (r *running) knows(ctx context.Context) error {
	defer time.AfterFunc(time.Minute, func() { _ = r.cmd.Process.Kill() }).Stop()
	if !r.lines.Scan() || r.lines.Text() != Knows {
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

func once(ctx context.Context, place peers.Place, name, bootstrap string) (s sample, err error) {
	r, err := start(place, name, bootstrap)
	if err != nil {
		return s, err
	}
	defer r.end()
	if err := r.knows(ctx); err != nil {
		return s, err
	}
	s.start = time.Since(r.began)
	if err := trial.Pause(ctx, standBy); err != nil {
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
