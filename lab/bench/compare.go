package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/goneli/neli/lab/bench/idle"
	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/bench/report"
	"github.com/goneli/neli/lab/bench/trial"
	"github.com/goneli/neli/lab/clients"
	"github.com/goneli/neli/lab/pause"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// comparison is one run over all systems, one after another.
type comparison struct {
	n, few, lanes int
	window        time.Duration // of idle groups
	settle        time.Duration // pause before an idle group is measured
	only          *regexp.Regexp
	client        string // another Kafka client to measure beside the default
}

// beds returns the beds that were asked for.
func (o *comparison) beds() []peers.Bed {
	beds := peers.Beds()
	if o.client != "" {
		beds = peers.On(beds, o.client)
	}
	for i := range beds {
		beds[i].Systems = slices.DeleteFunc(beds[i].Systems, func(s peers.System) bool { return !o.only.MatchString(s.Name()) })
	}
	return slices.DeleteFunc(beds, func(b peers.Bed) bool { return len(b.Systems) == 0 })
}

// possible returns what is wrong with the flags, before anything is started.
func (o *comparison) possible() error {
	if o.n < 1 || o.few < 1 {
		return fmt.Errorf("-n is %d and -few is %d, must be positive", o.n, o.few)
	}
	if len(o.beds()) == 0 {
		return fmt.Errorf("-only %q: no such system", o.only)
	}
	if _, err := clients.Named(o.client); err != nil {
		return fmt.Errorf("-client: %w", err)
	}
	return nil
}

// compare returns the results, and the versions of servers.
func (o *comparison) compare(ctx context.Context, place peers.Place) (*report.Results, []string, error) {
	r := &report.Results{}
	var versions []string
	for _, bed := range o.beds() {
		version, err := o.bed(ctx, place, bed, r)
		if err != nil {
			return nil, nil, fmt.Errorf("%s, %s: %w", bed.Family, bed.Name, err)
		}
		if version != "" && !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	return r, versions, nil
}

// bed starts servers, and measures the systems on them.
func (o *comparison) bed(ctx context.Context, place peers.Place, bed peers.Bed, r *report.Results) (version string, err error) {
	logf("starting servers: %s, %s", bed.Family, bed.Name)
	servers, err := bed.Start(ctx, place)
	if err != nil {
		return "", err
	}
	defer servers.Stop()
	for _, system := range bed.Systems {
		began := time.Now()
		s, err := o.system(ctx, place, system, servers)
		if err != nil {
			return "", err
		}
		r.Systems = append(r.Systems, s)
		logf("%s: %v", system.Name(), time.Since(began).Round(time.Second))
	}
	return servers.Version(), nil
}

func (o *comparison) system(ctx context.Context, place peers.Place, system peers.System, servers peers.Servers) (report.System, error) {
	s := report.System{Family: system.Family, Bed: system.Bed, Setting: system.Setting, Inside: system.Inside, Sentinel: system.Sentinel, Lease: measure.Milliseconds(system.Lease)}
	var err error
	s.Results, err = trial.Series(ctx, system, trial.Options{Place: place, Servers: servers, N: o.n, Few: o.few, Lanes: o.lanes, Log: logf},
		func(ctx context.Context, g *trial.Group) (err error) {
			if system.Idle && o.window > 0 {
				s.Idle, err = o.idle(ctx, g, system, servers)
			}
			return err
		})
	return s, err
}

// idle measures an idle group, with the members' sampling off. It waits first, since members are busier just after their
// start.
func (o *comparison) idle(ctx context.Context, g *trial.Group, system peers.System, servers peers.Servers) ([]idle.Usage, error) {
	if err := pause.For(ctx, o.settle); err != nil {
		return nil, err
	}
	// The window is at least as long as the time between two beats of a member.
	u, err := idle.Measure(ctx, max(o.window, system.Lease), g.Pids(), servers.Pids())
	if err != nil {
		return nil, err
	}
	return []idle.Usage{u}, nil
}

// compared lists the modules whose versions the results state.
var compared = map[string]string{
	"github.com/confluentinc/confluent-kafka-go/v2": "confluent-kafka-go",
	"go.etcd.io/etcd/client/v3":                     "etcd's client",
	"github.com/hashicorp/raft":                     "hashicorp/raft",
	"github.com/hashicorp/raft-boltdb/v2":           "raft-boltdb",
	"google.golang.org/grpc":                        "grpc-go",
}

// versions returns the versions of this program's parts. Servers report their own.
func versions() []string {
	var list []string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if name := compared[m.Path]; name != "" {
				list = append(list, name+" "+m.Version)
			}
		}
	}
	_, rdkafka := kafka.LibraryVersion()
	return append(list, "librdkafka "+rdkafka)
}

// commit returns the commit of the sources. Results and pages may differ from it, since a run writes them.
func commit(ctx context.Context) string {
	head, err := git(ctx, "rev-parse", "--short", "HEAD")
	if err != nil || head == "" {
		return "unknown"
	}
	changed, err := git(ctx, "status", "--porcelain", "--", ":/", ":(top,exclude)lab/bench/results", ":(top,exclude)docs/benchmarks.*")
	if err != nil || changed != "" {
		head += ", with changes"
	}
	return head
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	return strings.TrimSpace(string(out)), err
}

// machine describes the machine.
func machine() string {
	model := "unknown CPU"
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 && cpus[0].ModelName != "" {
			model = cpus[0].ModelName
		}
	}
	var name unix.Utsname
	kernel := "unknown"
	if err := unix.Uname(&name); err == nil {
		kernel = unix.ByteSliceToString(name.Release[:])
	}
	return fmt.Sprintf("%d cores (%s), Linux %s, %s", runtime.NumCPU(), model, kernel, runtime.Version())
}
