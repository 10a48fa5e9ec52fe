package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/testkit/pause"
	"github.com/goneli/neli/testkit/witness"
)

const (
	// recovery bounds how long it takes until all is well again. Kafka readmits a killed broker
	// after its session, 9 s.
	recovery = 3 * time.Minute
	// calm is the pause between two faults.
	calm = 12 * time.Second
)

// demonstration inflicts one fault after the other on a site, and keeps what was observed.
type demonstration struct {
	*site
	desk  *browser
	watch watch
	began time.Time
	acts  []*act
	shot  []byte // the picture of a page
}

// act is one fault, from its beginning until all is well again.
type act struct {
	fault
	witness.Span
	machine    string // the leader's
	from, till time.Time
}

// fault is one kind of fault.
type fault struct {
	what   string        // with %s for the machine that leads
	hold   time.Duration // until it is repaired
	strike func(*demonstration, context.Context, *act) (repair func(context.Context) error, err error)
}

var faults = []fault{
	{what: "`kill -9` of the job on `%s`", strike: func(d *demonstration, _ context.Context, a *act) (func(context.Context) error, error) {
		return nil, d.stations[a.machine].kill(jobDepth)
	}},
	{what: "`kill -9` of the elector, `neli run`, on `%s`", strike: func(d *demonstration, _ context.Context, a *act) (func(context.Context) error, error) {
		return nil, d.stations[a.machine].kill(electorDepth)
	}},
	{what: "network of the machine `%s` cut for 20 s", hold: 20 * time.Second, strike: (*demonstration).unplug},
	{what: "power of the machine `%s` cut for 20 s", hold: 20 * time.Second, strike: (*demonstration).powerCut},
	{what: "`kill -9` of the broker that leads the partition, back after 20 s, while `%s` led", hold: 20 * time.Second, strike: (*demonstration).killBroker},
}

// unplug disconnects the leader's machine, and takes a picture of another machine's page as soon as
// it shows a successor.
func (d *demonstration) unplug(ctx context.Context, a *act) (func(context.Context) error, error) {
	d.cut(a.machine, true)
	repair := func(context.Context) error { d.cut(a.machine, false); return nil }
	other := d.other(a.machine)
	if err := until(ctx, time.Minute, "another machine leads", func() bool {
		return slices.Contains(machineNames, d.watch.now(other)) && d.watch.now(other) != a.machine
	}); err != nil {
		return repair, err
	}
	var err error
	d.shot, err = d.desk.picture(d.desk.urls[other], 380, holderShown(d.watch.now(other)))
	return repair, err
}

// powerCut kills all processes on the leader's machine at once, and cuts its network at the same
// moment.
func (d *demonstration) powerCut(_ context.Context, a *act) (func(context.Context) error, error) {
	m := d.stations[a.machine]
	d.cut(m.name, true)
	m.powerOff()
	return func(context.Context) error {
		d.cut(m.name, false)
		return m.boot()
	}, nil
}

// killBroker kills the broker that leads the election's partition.
func (d *demonstration) killBroker(ctx context.Context, _ *act) (func(context.Context) error, error) {
	i, err := d.leaderBroker(ctx)
	if err != nil {
		return nil, err
	}
	b := d.cluster.Brokers()[i]
	b.Kill()
	return func(ctx context.Context) error {
		if err := b.Restart(ctx); err != nil {
			return err
		}
		return b.WaitInSync(ctx)
	}, nil
}

// other returns a machine other than the given one.
func (d *demonstration) other(name string) string {
	i := slices.Index(machineNames, name)
	return machineNames[(i+1)%len(machineNames)]
}

// leader is the machine that all pages show as the holder; "" if they do not agree.
func (d *demonstration) leader() string {
	name := d.watch.now(machineNames[0])
	for _, other := range machineNames[1:] {
		if d.watch.now(other) != name {
			return ""
		}
	}
	if !slices.Contains(machineNames, name) {
		return ""
	}
	return name
}

// disturb inflicts all faults in turn.
func (d *demonstration) disturb(ctx context.Context) error {
	d.watch.s = d.site
	watched, stop := context.WithCancel(ctx)
	work := d.watch.start(watched)
	defer work.Wait()
	defer stop()
	d.began = time.Now()
	if err := d.settle(ctx); err != nil {
		return err
	}
	for _, f := range faults {
		if err := d.act(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", f.what, err)
		}
	}
	return nil
}

// settle waits until all pages show the same leader, and still do after a pause.
func (d *demonstration) settle(ctx context.Context) error {
	if err := until(ctx, recovery, "all pages show the same leader", func() bool { return d.leader() != "" }); err != nil {
		return err
	}
	if err := pause.For(ctx, calm); err != nil {
		return err
	}
	return until(ctx, recovery, "all pages still show the same leader", func() bool { return d.leader() != "" })
}

// act inflicts one fault, and waits until all is well again.
func (d *demonstration) act(ctx context.Context, f fault) error {
	a := &act{fault: f, machine: d.leader()}
	d.acts = append(d.acts, a)
	a.From, a.from = witness.Now(), time.Now()
	d.log.Info("fault", "what", fmt.Sprintf(f.what, a.machine))
	repair, err := f.strike(d, ctx, a)
	if err == nil {
		err = pause.For(ctx, f.hold-(witness.Now()-a.From))
	}
	if repair != nil && err == nil {
		limited, cancel := context.WithTimeout(ctx, recovery)
		err = repair(limited)
		cancel()
	}
	if err == nil {
		err = d.settle(ctx)
	}
	a.To, a.till = witness.Now(), time.Now()
	return err
}
