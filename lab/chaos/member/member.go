package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/store"
	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/clients"
	"github.com/goneli/neli/lab/pause"
	"github.com/goneli/neli/lab/witness"
	"github.com/goneli/neli/peers"
)

type process struct {
	Params
	self   *child.Self
	log    *slog.Logger
	nelis  [history.Modes]*neli.Neli
	values atomic.Int64 // written so far
	ops    atomic.Int64
	stores []store.Store  // by role
	seen   []atomic.Int64 // by role: the last token that was read
}

// Main runs the member. It returns after the command to close, or when its parent is gone.
func Main() error {
	p := &process{}
	var err error
	if p.self, err = child.Begin(&p.Params); err != nil {
		return err
	}
	p.seen, p.log = make([]atomic.Int64, p.Roles), p.self.Logger()
	if err := p.openStores(); err != nil {
		return err
	}
	defer p.closeStores()
	if err := p.open(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		return child.Sample(ctx, child.Contender{Neli: p.nelis[history.Exclusive], Mode: neli.Exclusive, Roles: p.Roles},
			child.Contender{Neli: p.nelis[history.NonExclusive], Mode: neli.NonExclusive, Roles: p.Roles})
	})
	work.Go(func() error { p.read(ctx); return nil })
	for mode := range p.nelis {
		work.Go(func() error { p.drive(mode); return nil })
	}
	return child.Obey(p.self, func(c Command) (last bool, err error) {
		if c.Do != DoClose {
			return false, fmt.Errorf("unknown command %q", c.Do)
		}
		p.close()
		cancel()
		return true, work.Wait()
	})
}

func (p *process) open() error {
	provider, err := p.provider()
	if err != nil {
		return err
	}
	for mode := range p.nelis {
		if p.Peers != nil && mode != history.Exclusive {
			continue
		}
		cfg := neli.Config{
			LeaderGroupID: Group(mode),
			Name:          p.Name,
			Roles:         p.Roles,
			Provider:      provider,
			Logger:        p.log.With("mode", history.ModeName(mode)),
		}
		if p.Peers == nil {
			cfg.KafkaConfig, cfg.Partitions = neli.KafkaConfigMap{"bootstrap.servers": p.Bootstrap}, p.Roles
		}
		if mode == history.Exclusive {
			p.exclusive(&cfg)
		} else {
			cfg.Mode = neli.NonExclusive
		}
		if p.nelis[mode], err = neli.New(cfg, func(e neli.Event) { p.told(mode, e) }); err != nil {
			return err
		}
	}
	return nil
}

// exclusive sets what only the Neli of exclusive mode has.
func (p *process) exclusive(cfg *neli.Config) {
	cfg.Nomination, cfg.HeartbeatTimeout, cfg.Sentinel = p.Nomination, p.Timeout, p.Sentinel
	if p.Peers == nil {
		cfg.LeaderTopic, cfg.TokenBase = Topic(p.Topic), TokenBase(p.Topic)
	}
	if p.Logs > 0 {
		cfg.Logs, cfg.Partitions = p.Logs, 0
	}
	if p.Prepare {
		cfg.Prepare, cfg.Standby = prepare, true
	}
}

// prepare takes up to a second and a half, and fails one time out of twenty.
func prepare(ctx context.Context, _ int) error {
	if err := pause.For(ctx, rand.N(1500*time.Millisecond)); err != nil || rand.N(20) > 0 {
		return err
	}
	return errors.New("chaos lets this Prepare fail")
}

// Sentinel runs a sentinel until its process is killed.
func Sentinel() error {
	p := &process{}
	if err := json.Unmarshal([]byte(os.Getenv(SentinelEnv)), &p.Params); err != nil {
		return err
	}
	provider, err := p.provider()
	if err != nil {
		return err
	}
	cfg := neli.Config{Name: p.Name, Sentinel: p.Params.Sentinel, Provider: provider, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if p.Peers == nil {
		cfg.KafkaConfig = neli.KafkaConfigMap{"bootstrap.servers": p.Bootstrap}
	}
	return neli.RunSentinel(context.Background(), cfg)
}

// provider returns the provider for Kafka or, without brokers, for log hosts.
func (p *process) provider() (kafka.Provider, error) {
	if p.Peers == nil {
		return clients.Chosen()
	}
	cfg := peers.Config{Insecure: true}
	if p.self != nil { // a sentinel has no log
		cfg.Self = hostOf(p.Name)
	}
	for host, address := range p.Peers {
		cfg.Hosts = append(cfg.Hosts, peers.Host{ID: host, Address: address})
	}
	return peers.Provider(cfg), nil
}

// drive leads until the Neli is closed.
func (p *process) drive(mode int) {
	if p.nelis[mode] == nil {
		return
	}
	err := p.nelis[mode].Lead(context.Background(), func(ctx context.Context, l neli.Leadership) error {
		if mode == history.Exclusive {
			p.lead(ctx, l)
		} else {
			<-ctx.Done()
		}
		return nil
	})
	if !errors.Is(err, neli.ErrClosed) {
		p.tell(Line{Say: SayEnded, Mode: mode, Text: fmt.Sprint(err)})
	}
}

func (p *process) told(mode int, e neli.Event) {
	event := child.EventOf(e)
	p.tell(Line{Say: SayEvent, Mode: mode, Text: event.What + ": " + event.Reason, Terms: event.Terms})
}

// close closes all Nelis concurrently.
func (p *process) close() {
	errs := make([]error, len(p.nelis))
	var closing sync.WaitGroup
	for mode, n := range p.nelis {
		if n == nil {
			continue
		}
		closing.Go(func() { errs[mode] = n.Close() })
	}
	closing.Wait()
	line := Line{Say: SayClosed}
	if err := errors.Join(errs...); err != nil {
		line.Text = err.Error()
	}
	p.tell(line)
}

func (p *process) tell(line Line) {
	line.At = witness.Now()
	p.self.Tell(line)
}

// hostOf returns the host of the member that has this name.
func hostOf(name string) string {
	host, _, _ := strings.Cut(name, ".")
	return host
}
