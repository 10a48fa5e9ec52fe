package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli/internal/sentinel"
	"github.com/goneli/neli/lab/bench/idle"
	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/bench/probe"
	"github.com/goneli/neli/lab/bench/report"
	"github.com/goneli/neli/lab/bench/trial"
	"github.com/goneli/neli/lab/clients"
	"github.com/goneli/neli/lab/pause"
)

// comparison is one run over all systems, one after another.
type comparison struct {
	n, few, lanes int
	window        time.Duration // of idle groups
	settle        time.Duration // pause after the servers' start, before anything is measured; groups get a part of it
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

// possible returns what is missing, before anything is started.
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
	known := report.Bed{Family: bed.Family, Name: bed.Name}
	var trips *probe.Probe
	switch s := servers.(type) {
	case peers.Kafka:
		trips, err = probe.Open(ctx, s.Bootstrap())
	case peers.Distant:
		trips, err = probe.Open(ctx, s.Bootstrap())
	case peers.LogHost:
		trips, err = probe.OpenHost(ctx, s.Addr)
	}
	if err != nil {
		return "", err
	}
	if trips != nil {
		defer trips.Close()
		if known.RoundTrips, err = trips.RoundTrips(ctx, 200); err != nil {
			return "", err
		}
	}
	if o.window > 0 && len(servers.Pids()) > 0 {
		if err := pause.For(ctx, o.settle); err != nil {
			return "", err
		}
		alone, err := idle.Measure(ctx, o.window, nil, servers.Pids())
		if err != nil {
			return "", err
		}
		known.Alone = &alone
	}
	r.Beds = append(r.Beds, known)
	for _, system := range bed.Systems {
		began := time.Now()
		s, err := o.system(ctx, place, system, servers, trips)
		if err != nil {
			return "", err
		}
		r.Systems = append(r.Systems, s)
		logf("%s: %v", system.Name(), time.Since(began).Round(time.Second))
	}
	return servers.Version(), nil
}

func (o *comparison) system(ctx context.Context, place peers.Place, system peers.System, servers peers.Servers, trips *probe.Probe) (report.System, error) {
	s := report.System{Family: system.Family, Bed: system.Bed, Setting: system.Setting, Roles: system.Roles, Inside: system.Inside, Sentinel: system.Sentinel, Lease: measure.Milliseconds(system.Lease)}
	if system.Timed {
		s.Timeout = s.Lease
	}
	var err error
	s.Results, err = trial.Series(ctx, system, trial.Options{Place: place, Servers: servers, N: o.n, Few: o.few, Lanes: o.lanes, Log: logf, Probe: trips},
		func(ctx context.Context, g *trial.Group) (err error) {
			if s.Idle, err = o.idle(ctx, g, system, servers); err == nil {
				s.Watching, err = o.watching(ctx, place, system, servers)
			}
			return err
		})
	return s, err
}

// idle measures idle groups of several sizes, with the members' sampling off. It waits first, since members are
// busier just after their start.
func (o *comparison) idle(ctx context.Context, g *trial.Group, system peers.System, servers peers.Servers) ([]idle.Usage, error) {
	var all []idle.Usage
	for _, size := range system.Idle {
		if o.window == 0 {
			break
		}
		if err := g.Ready(ctx, size); err != nil {
			return all, fmt.Errorf("idle group of %d: %w", size, err)
		}
		if err := g.Quieten(ctx); err != nil {
			return all, err
		}
		if err := pause.For(ctx, o.settle/6); err != nil {
			return all, err
		}
		// The window is at least as long as the time between two beats of a member.
		u, err := idle.Measure(ctx, max(o.window, system.Lease), g.Pids(), servers.Pids())
		if err != nil {
			return all, err
		}
		all = append(all, u)
	}
	return all, nil
}

// watching measures what an idle sentinel costs: first beside one member, which leads, then beside more
// members that are registered and lead nothing.
func (o *comparison) watching(ctx context.Context, place peers.Place, system peers.System, servers peers.Servers) (all []report.Watching, err error) {
	if o.window == 0 || len(system.Registered) == 0 {
		return nil, nil
	}
	g := trial.NewGroup(place, system, servers, fmt.Sprintf("watched-%d", time.Now().UnixNano()), time.Second, new(sync.Mutex))
	defer g.Close()
	if err := g.Ready(ctx, 1); err != nil {
		return nil, err
	}
	if err := g.Quieten(ctx); err != nil {
		return nil, err
	}
	registered := 1
	for _, n := range system.Registered {
		for registered < n {
			more := min(n-registered, sentinel.MaxOwned)
			of, err := g.Watched()
			if err != nil {
				return all, err
			}
			crowd, err := peers.Register(ctx, place, of, more)
			if err != nil {
				return all, err
			}
			defer crowd.Kill()
			registered += more
		}
		if err := pause.For(ctx, o.settle/6); err != nil {
			return all, err
		}
		u, err := idle.Measure(ctx, max(o.window, system.Lease), []int{g.Sentinel()}, servers.Pids())
		if err != nil {
			return all, err
		}
		all = append(all, report.Watching{Registered: registered, CPU: u.MembersCPU, Memory: u.Memory})
	}
	return all, nil
}
