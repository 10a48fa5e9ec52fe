package nelitest

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goneli/neli/internal/freeze"
	"github.com/goneli/neli/kafka"
)

// process is a Provider: one process of a member.
type process struct {
	b       *Broker
	m       *member
	dead    bool
	clients []endpoint
}

func (p *process) kill() {
	p.dead = true
	p.m.clients = slices.DeleteFunc(p.m.clients, func(e endpoint) bool { return slices.Contains(p.clients, e) })
	for _, c := range p.clients {
		c.kill()
	}
	p.clients = nil
}

// Frozen implements [freeze.Freezer].
func (p *process) Frozen() *freeze.State { return &p.m.frozen }

// ended is the error of the clients of a process that is dead.
func (p *process) ended() error {
	if p.b.closed {
		return fmt.Errorf("%w: the broker is closed", kafka.ErrClientFatal)
	}
	return fmt.Errorf("%w: %s was killed", kafka.ErrClientFatal, p.m.name)
}

// start adds a new client, under the lock. It fails if the process is dead.
func (p *process) start(make func(client) endpoint) (endpoint, error) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if p.dead {
		return nil, p.ended()
	}
	e := make(p.newClient())
	p.clients = append(p.clients, e)
	p.m.clients = append(p.m.clients, e)
	return e, nil
}

// Producer implements [kafka.Provider].
func (p *process) Producer(props map[string]string, _ *slog.Logger) (kafka.Producer, error) {
	timeout, err := millis(props, "message.timeout.ms", 300*time.Second)
	if err != nil {
		return nil, err
	}
	e, err := p.start(func(c client) endpoint { return newProducer(c, timeout) })
	if err != nil {
		return nil, err
	}
	return e.(*producer), nil
}

// LogReader implements [kafka.Provider].
func (p *process) LogReader(map[string]string, *slog.Logger) (kafka.LogReader, error) {
	e, err := p.start(func(c client) endpoint { return newReader(c) })
	if err != nil {
		return nil, err
	}
	return e.(*reader), nil
}

// GroupConsumer implements [kafka.Provider].
func (p *process) GroupConsumer(props map[string]string, _ *slog.Logger) (kafka.GroupConsumer, error) {
	s, err := groupSettings(props)
	if err != nil {
		return nil, err
	}
	e, err := p.start(func(c client) endpoint { return newGroupConsumer(c, s) })
	if err != nil {
		return nil, err
	}
	return e.(*groupConsumer), nil
}

// Admin implements [kafka.Provider].
func (p *process) Admin(over kafka.Producer) (kafka.Admin, error) {
	prod, ok := over.(*producer)
	if !ok || prod.proc != p {
		return nil, errors.New("nelitest: Admin needs a producer of the same provider")
	}
	e, err := p.start(func(c client) endpoint { return newAdmin(c) })
	if err != nil {
		return nil, err
	}
	return e.(*admin), nil
}

// settings are the properties that have an effect on a group consumer.
type settings struct {
	group      string
	instance   string
	session    time.Duration
	heartbeat  time.Duration
	maxPoll    time.Duration
	eager      bool     // its partitions are revoked before each assignment
	strategies []string // in order of preference
	reset      string
}

func groupSettings(props map[string]string) (settings, error) {
	s := settings{group: props["group.id"], instance: props["group.instance.id"], reset: props["auto.offset.reset"]}
	var errs []error
	if s.group == "" {
		errs = append(errs, errors.New("nelitest: group.id is missing"))
	}
	switch s.reset {
	case "error":
	case "earliest", "smallest", "beginning":
		s.reset = "earliest"
	default:
		s.reset = "latest"
	}
	var err error
	if s.session, err = millis(props, "session.timeout.ms", 45*time.Second); err != nil {
		errs = append(errs, err)
	}
	if s.heartbeat, err = millis(props, "heartbeat.interval.ms", 3*time.Second); err != nil {
		errs = append(errs, err)
	}
	if s.maxPoll, err = millis(props, "max.poll.interval.ms", 300*time.Second); err != nil {
		errs = append(errs, err)
	}
	if s.strategies, err = readStrategies(props["partition.assignment.strategy"]); err != nil {
		errs = append(errs, err)
	}
	s.eager = !slices.Contains(s.strategies, sticky)
	return s, errors.Join(errs...)
}

const (
	sticky     = "cooperative-sticky"
	byRange    = "range"
	roundRobin = "roundrobin"
)

// readStrategies reads a list of assignment strategies.
func readStrategies(list string) ([]string, error) {
	if list == "" {
		return []string{sticky}, nil
	}
	var all []string
	for name := range strings.SplitSeq(list, ",") {
		all = append(all, strings.TrimSpace(name))
	}
	for _, name := range all {
		switch {
		case name != sticky && name != byRange && name != roundRobin:
			return nil, fmt.Errorf("nelitest: partition.assignment.strategy=%s: has %q; must be cooperative-sticky, range, roundrobin or range,roundrobin", list, name)
		case name == sticky && len(all) > 1:
			return nil, fmt.Errorf("nelitest: partition.assignment.strategy=%s: cooperative-sticky must stand alone", list)
		}
	}
	return all, nil
}

// millis reads a property that is a number of milliseconds.
func millis(props map[string]string, name string, otherwise time.Duration) (time.Duration, error) {
	s, ok := props[name]
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("nelitest: %s=%s: must be a positive number of milliseconds", name, s)
	}
	return time.Duration(n) * time.Millisecond, nil
}
