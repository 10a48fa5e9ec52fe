// Package machine builds a cluster of brokers, members and a store, each on a host of its own, disturbs it according to a
// plan, and returns the record of what happened.
package machine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/member"
	"github.com/goneli/neli/lab/chaos/oracle"
	"github.com/goneli/neli/lab/chaos/plan"
	"github.com/goneli/neli/lab/chaos/store"
	"github.com/goneli/neli/lab/chaos/wire"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/nursery"
	"github.com/goneli/neli/lab/pause"
	"github.com/goneli/neli/lab/witness"
)

// Options say what to build, and for how long to disturb it.
type Options struct {
	For        time.Duration // no step begins later
	Seed       uint64
	Nomination neli.Nomination
	Timeout    time.Duration // T of exclusive mode
	Peers      bool          // no brokers: a log host in each member, and exclusive mode only
	Stores     []string      // kinds of stores that leaders write to; roles use them in turn
	Unfenced   bool          // leave out the fences, to see that the checks find it
	Only       []string      // kinds of faults; nil for all
	First      []string      // kinds that come before all others
	With       []string      // Settings
	Former     string        // the program of every second member: this package, built with a former library; empty for none
	Each       int           // measure fail-over instead: how often each kind of plan.FailOvers occurs; 0 for not
	Dir        string        // for the logs of members and brokers
	Scratch    string        // for the data of brokers and store
	Log        *slog.Logger
}

// Numbers of brokers, members and roles.
const (
	Members = 5
	Brokers = 3
	Roles   = 3
)

// Recovery is how long the runner waits, after the repair of a fault, for every role of both modes to have a leader. Then it
// complains and goes on. LimitsOf has the bounds by which the oracle judges each kind of fault.
const Recovery = 30 * time.Second

// warmUp is how long brokers run before fail-over is measured.
const warmUp = 30 * time.Second

// closing bounds Close of all members at once. One member takes at most 10 s (drain) and 8 s
// (overlap); the further 12 s for an unreachable broker do not occur here.
const closing = 30 * time.Second

// Pace is the timing of non-exclusive mode: the library's defaults.
var Pace = oracle.Pace{Timeout: 18 * time.Second, Beat: 900 * time.Millisecond}

// Parts of the bounds, as Kafka and the library document them.
const (
	session   = 6 * time.Second  // session timeout of a member of a group
	rebalance = 5 * time.Second  // J: members learn of it at their heartbeats, cooperative-sticky takes two rounds, and one may have just begun
	lag       = 45 * time.Second // 1.5 replica.lag.time.max.ms: acks=all waits this long for a follower
	clients   = 10 * time.Second // reconnect.backoff.max.ms, and requests in flight to the wrong broker
	busy      = 2 * time.Second  // slack for a machine of two cores that runs ten processes
)

// LimitsOf returns the bounds of a run. In exclusive mode, the others notice a silent leader after W(T) and replace it within
// another T: the candidates answer each other, and the one that should lead claims first. A sentinel releases the roles of a
// dead leader, if their terms are older than T. A handover costs no W(T). With Assigned nomination the group must also end the
// session and rebalance before a process may claim. With Each the bounds are what the documents promise.
func LimitsOf(o Options) oracle.Limits {
	takeover, handover := 2*o.Timeout+busy+o.answer(), o.Timeout+busy+o.answer()
	if o.Nomination == neli.NominationAssigned {
		takeover, handover = max(takeover, session+rebalance+o.Timeout+busy), rebalance+o.Timeout+busy
	}
	crash := session + rebalance + Pace.Beat + busy
	recovery := oracle.Recovery{
		Takeover: takeover, Handover: handover,
		BrokerLost: plan.BrokerSession + clients + takeover,
		Parted:     lag + clients + takeover,
		Repaired:   plan.BrokerSession + takeover,
	}
	if o.Has(Logs) { // a broker's crash ends no term, so roles move only by handovers
		recovery.BrokerLost, recovery.Parted = handover, handover
	}
	if o.Has(Sentinels) && o.Nomination == neli.NominationOpen {
		recovery.Died, recovery.Elder = handover, o.Timeout
	}
	if o.Each > 0 {
		recovery = oracle.Promised(o.Timeout)
	}
	recovery.Presuming, recovery.PresumingRepaired = crash, plan.BrokerSession+crash
	return oracle.Limits{Recovery: recovery, Pace: Pace, Peers: o.Peers, Logs: o.Has(Logs), Crash: crash, Register: time.Minute}
}

// Outcome is the result of a run.
type Outcome struct {
	Record     history.Record
	Log        []store.Entry
	Complaints []string // what the runner itself found wrong
	Packets    wire.Count

	StoreVersion string
}

type machine struct {
	Options
	nursery *nursery.Nursery
	net     *wire.Net
	store   *store.Server
	cluster *kafkatest.Cluster
	groups  *groups
	disks   []*nursery.Process // of the brokers, with Each
	steps   int
	topic   int // number of exclusive mode's topic

	mu      sync.Mutex
	guests  []*guest          // present and former
	present map[string]*guest // by host
	faults  []history.Fault
	wrong   []string
}

// Directories below Options.Dir.
const (
	MembersDir = "members"
	BrokersDir = "brokers"
)

// Host names.
const (
	hostRunner = "runner"
	hostStore  = "store"
)

func brokerHost(i int) string { return fmt.Sprintf("b%d", i+1) }
func memberHost(i int) string { return fmt.Sprintf("m%d", i+1) }

// FaultHosts returns the names of all hosts that faults may strike.
func (o Options) FaultHosts() []string {
	var names []string
	if !o.Peers {
		names = brokerHosts()
	}
	return append(append(names, MemberHosts()...), hostStore)
}

func brokerHosts() (names []string) {
	for i := range Brokers {
		names = append(names, brokerHost(i))
	}
	return names
}

// MemberHosts returns the names of the members' hosts.
func MemberHosts() []string {
	var names []string
	for i := range Members {
		names = append(names, memberHost(i))
	}
	return names
}

// Run does a whole run. An error means that the run has no result.
func Run(ctx context.Context, o Options) (*Outcome, error) {
	m := &machine{Options: o, present: map[string]*guest{}}
	defer m.close()
	if err := m.build(ctx); err != nil {
		return nil, fmt.Errorf("building the cluster: %w", err)
	}
	if !pause.Until(ctx, 5*time.Minute, func() bool { return m.unwell(ctx) == "" }) {
		return nil, errors.Join(errors.New("in a cluster that nothing disturbs "+m.unwell(ctx)), ctx.Err())
	}
	record := history.Record{Start: witness.Now(), Roles: Roles}
	m.Log.Info("every role has a leader; chaos begins", "for", o.For, "seed", o.Seed)
	err := m.disturb(ctx)
	record.End = witness.Now()
	if err != nil {
		return nil, err
	}
	m.dismiss()
	return m.collect(ctx, record)
}

func (m *machine) build(ctx context.Context) (err error) {
	if m.nursery, err = nursery.New(""); err != nil {
		return err
	}
	if m.net, err = wire.New(m.Seed, append([]string{hostRunner}, m.FaultHosts()...)...); err != nil {
		return err
	}
	for _, dir := range []string{MembersDir, BrokersDir} {
		if err := os.MkdirAll(filepath.Join(m.Dir, dir), 0o755); err != nil {
			return err
		}
	}
	runner, db := m.net.Host(hostRunner), m.net.Host(hostStore)
	both, bothCtx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		m.store, err = store.Start(bothCtx, db, db.IP, runner, filepath.Join(m.Scratch, "store"), Roles)
		return err
	})
	if !m.Peers {
		both.Go(func() error { return m.startBrokers(bothCtx) })
	}
	if err := both.Wait(); err != nil {
		return err
	}
	m.distances()
	if m.Has(Sentinels) {
		if err := m.startSentinels(); err != nil {
			return err
		}
	}
	return m.enlistAll()
}

func (m *machine) enlistAll() error {
	for _, host := range MemberHosts() {
		if err := m.enlist(host); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) startBrokers(ctx context.Context) (err error) {
	runner, hosts := m.net.Host(hostRunner), m.net.Brokers(brokerHosts()...)
	if m.Each > 0 {
		err = m.startDisks(ctx, hosts)
	} else {
		err = m.furnish(hosts)
	}
	if err != nil {
		return err
	}
	m.cluster, err = kafkatest.Start(ctx, kafkatest.Options{Brokers: Brokers, Hosts: hosts, Dial: runner.Dial,
		Dir: filepath.Join(m.Scratch, "kafka"), Log: m.Log,
		// Partitions return to their preferred leader seconds after it is back, instead of minutes. Otherwise one broker would
		// lead them all after a few faults, and restarts of the others would have no effect.
		BrokerProps: map[string]string{"leader.imbalance.check.interval.seconds": "5"}})
	if err != nil {
		return err
	}
	if m.groups, err = newGroups(m.cluster.Bootstrap(), runner.Dial); err != nil {
		return err
	}
	return store.MakeTopic(ctx, m.groups.client, Roles)
}

// enlist starts a member on a host that has none.
func (m *machine) enlist(host string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	incarnation := 1
	for _, g := range m.guests {
		if g.host == host {
			incarnation++
		}
	}
	params := member.Params{
		Name:       fmt.Sprintf("%s.%d", host, incarnation),
		Number:     int64(len(m.guests) + 1),
		Seed:       m.Seed,
		DSN:        m.store.DSN,
		Unfenced:   m.Unfenced,
		Roles:      Roles,
		Nomination: m.Nomination,
		Timeout:    m.Timeout,
		Prepare:    m.Has(Prepare),
		Topic:      m.topic,
		Writers:    3,
		WriteEvery: 300 * time.Millisecond,
		ReadEvery:  200 * time.Millisecond,
		PauseOften: 0.08,
		// This is longer than a fail-over, even with Assigned nomination, and shorter than the library's DrainTimeout of 10 s.
		PauseAtMost: 8 * time.Second,
	}
	if m.Unfenced {
		params.PauseOften = 0 // instead, each writer's first write is always delayed
	}
	if m.Each > 0 { // these runs last for hours, and the registers are not what they measure
		params.WriteEvery, params.ReadEvery = 3*time.Second, 2*time.Second
	}
	for role := range Roles {
		params.Stores = append(params.Stores, m.storeOf(role))
	}
	if m.Has(Logs) {
		params.Logs = Brokers
	}
	if m.Has(Sentinels) {
		params.Sentinel = m.socket(host)
	}
	if m.Peers {
		params.Peers = m.peers()
	} else {
		params.Bootstrap = m.cluster.Bootstrap()
	}
	var program string
	if params.Number%2 == 0 {
		program = m.Former
	}
	g, err := newGuest(m.nursery, m.net.Host(host), filepath.Join(m.Dir, MembersDir), program, params)
	if g != nil {
		m.guests = append(m.guests, g)
		m.present[host] = g
	}
	return err
}

func (m *machine) guest(host string) *guest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.present[host]
}

// leader returns the host of the member that leads a role, if one does.
func (m *machine) leader(mode, role int) (string, bool) {
	for _, host := range MemberHosts() {
		if g := m.guest(host); g != nil && g.answers(mode, role) != witness.No {
			return host, true
		}
	}
	return "", false
}

// disturb carries out the plan until the time is over. When it returns nil, every fault has been repaired.
func (m *machine) disturb(ctx context.Context) error {
	size := plan.Size{Members: Members, Brokers: Brokers, Roles: Roles}
	steps := plan.First(plan.Steps(m.Seed, size, m.With...), m.First, len(plan.Kinds(m.With...)))
	switch {
	case m.Peers:
		steps = plan.PeerSteps(m.Seed, size, m.Timeout)
	case m.Each > 0:
		steps = plan.FailOvers(m.Each, m.Timeout, Roles)
	}
	if m.Only != nil {
		steps = plan.Only(steps, m.Only)
	}
	if m.Each > 0 { // brokers that have just started are slow, and their logs stand still
		if err := pause.For(ctx, warmUp); err != nil {
			return err
		}
	}
	end := witness.Now() + m.For
	for s := range steps {
		if witness.Now() >= end {
			break
		}
		if m.Each > 0 {
			m.calm(ctx, s)
		}
		if err := m.step(ctx, s); err != nil {
			return err
		}
		if err := m.settle(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) complain(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
	m.Log.Error(m.wrong[len(m.wrong)-1])
}

// dismiss closes all members at once, in good order.
func (m *machine) dismiss() {
	var leaving sync.WaitGroup
	for _, host := range MemberHosts() {
		g := m.guest(host)
		leaving.Go(func() {
			if !m.leave(g, closing) {
				m.complain("%s: Close did not return within %v", g.Name, closing)
				g.Kill()
			}
		})
	}
	leaving.Wait()
}

// leave closes a member, and waits until its process ends.
func (m *machine) leave(g *guest, within time.Duration) bool {
	if err := g.Say(member.Command{Do: member.DoClose}); err != nil {
		return !g.Running() // complaints reports that
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-g.Done():
		return true
	case <-timer.C:
		return false
	}
}

// collect puts the record together, after all members have ended.
func (m *machine) collect(ctx context.Context, record history.Record) (*Outcome, error) {
	log, err := m.store.Log(ctx, m.net.Host(hostRunner))
	if err != nil {
		return nil, err
	}
	if !m.Peers {
		if record.Log, err = m.readLogs(ctx); err != nil {
			return nil, err
		}
		committed, err := m.committed(ctx)
		if err != nil {
			return nil, err
		}
		log = append(log, committed...)
	}
	record.Faults = m.faults
	complaints := m.wrong
	for _, g := range m.guests {
		record.Lives = append(record.Lives, g.life())
		record.Ops = append(record.Ops, g.operations()...)
		complaints = append(complaints, g.complaints()...)
	}
	return &Outcome{Record: record, Log: log, Complaints: complaints, Packets: m.net.Total(),
		StoreVersion: m.store.Version}, nil
}

// close kills everything that still runs, whatever state it is in, and keeps the brokers' logs.
func (m *machine) close() {
	for _, g := range m.guests {
		g.Kill()
	}
	if m.nursery != nil {
		m.nursery.Close()
	}
	if m.groups != nil {
		m.groups.close()
	}
	if m.cluster != nil {
		if err := m.cluster.KeepLogs(filepath.Join(m.Dir, BrokersDir)); err != nil {
			m.Log.Warn("keeping the brokers' logs", "error", err)
		}
		m.cluster.Stop()
	}
	if m.store != nil {
		m.store.Stop()
	}
	if m.net != nil {
		m.net.Close()
	}
}
