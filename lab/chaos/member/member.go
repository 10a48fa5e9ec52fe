package member

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/lab/chaos/client"
	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/store"
	"github.com/goneli/neli/lab/witness"
	"github.com/goneli/neli/peers"
)

type process struct {
	Params
	samples *witness.Samples
	log     *slog.Logger
	nelis   [history.Modes]*neli.Neli
	values  atomic.Int64 // written so far
	ops     atomic.Int64
	health  health
	stores  []store.Store  // by role
	seen    []atomic.Int64 // by role: the last token that was read

	mu  sync.Mutex // lines are written one at a time
	out io.Writer
}

// Main runs the member. It returns after the command to close, or when its parent is gone.
func Main() error {
	in := bufio.NewScanner(os.Stdin)
	if !in.Scan() {
		return errors.New("no parameters")
	}
	p := &process{out: os.Stdout}
	if err := json.Unmarshal(in.Bytes(), &p.Params); err != nil {
		return fmt.Errorf("reading parameters: %w", err)
	}
	shared := os.NewFile(3, "samples")
	samples, err := witness.Open(shared)
	if err != nil {
		return err
	}
	p.samples, p.seen = samples, make([]atomic.Int64, p.Roles)
	p.log = slog.New(slog.NewTextHandler(os.NewFile(4, "log"), &slog.HandlerOptions{Level: slog.LevelDebug}))
	if err := p.openStores(); err != nil {
		return err
	}
	defer p.closeStores()
	if err := p.open(); err != nil {
		return err
	}
	for _, m := range p.nelis[history.Exclusive].Members() {
		if m.Self {
			p.tell(Line{Say: SayID, Text: m.ID})
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var work sync.WaitGroup
	work.Go(func() { p.sample(ctx) })
	work.Go(func() { p.read(ctx) })
	for mode := range p.nelis {
		work.Go(func() { p.drive(mode) })
	}
	for in.Scan() {
		var c Command
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			return fmt.Errorf("reading a command: %w", err)
		}
		if c.Do == DoClose {
			p.be(DoBeWell) // Close waits for the check to return
			p.close()
			cancel()
			work.Wait()
			return nil
		}
		p.obey(c)
	}
	return errors.New("the parent is gone") // the kernel kills this process with its parent
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
			Healthy:       p.health.check,
		}
		if p.Peers == nil {
			cfg.KafkaConfig, cfg.Partitions = neli.KafkaConfigMap{"bootstrap.servers": p.Bootstrap}, p.Roles
		}
		if mode == history.Exclusive {
			cfg.Nomination = p.Nomination
			cfg.HeartbeatTimeout = p.Timeout
			cfg.Sentinel = p.Sentinel
			p.incline(&cfg)
		} else {
			cfg.Mode = neli.NonExclusive
		}
		if p.nelis[mode], err = neli.New(cfg, func(e neli.Event) { p.told(mode, e) }); err != nil {
			return err
		}
	}
	return nil
}

// provider returns the provider for Kafka or, without brokers, for log hosts.
func (p *process) provider() (kafka.Provider, error) {
	if p.Peers == nil {
		return client.Provider()
	}
	cfg := peers.Config{Self: hostOf(p.Name), Insecure: true}
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
	line := Line{Say: SayEvent, Mode: mode}
	switch e := e.(type) {
	case neli.LeaderAcquired:
		line.Text, line.Terms = "acquired", e.Terms
	case neli.LeaderRevoked:
		line.Text, line.Terms = "revoked: "+e.Reason.String(), e.Terms
	case neli.LeaderFenced:
		line.Text, line.Terms = "fenced: "+e.Reason.String(), e.Terms
	}
	p.tell(line)
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
	p.mu.Lock()
	defer p.mu.Unlock()
	line.At = witness.Now()
	b, err := json.Marshal(line)
	if err == nil {
		_, err = p.out.Write(append(b, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("telling the runner: %v", err))
	}
}

// sample checks each millisecond whether this member leads each role, and once more at the end. One
// reading of the clock ends a sample and begins the next.
func (p *process) sample(ctx context.Context) {
	current := make([]int, history.Modes*p.Roles) // the current run of equal samples
	for i := range current {
		current[i] = -1
	}
	var records [history.Modes]uint64
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			last = true
		}
		before := witness.Now()
		for i := range current {
			mode, role := i/p.Roles, i%p.Roles
			answer := p.ask(mode, role)
			after := witness.Now()
			current[i] = p.samples.Take(current[i], mode, role, answer, witness.Window{Before: before, After: after})
			before = after
		}
		for mode, n := range p.nelis {
			if n == nil {
				continue
			}
			if now := n.Stats().Records; now != records[mode] {
				records[mode] = now
				p.samples.Note(mode, int64(before)) // the runner wants to know when a record was last read
			}
		}
	}
}

func (p *process) ask(mode, role int) int64 {
	if p.nelis[mode] == nil {
		return witness.No
	}
	if mode == history.NonExclusive {
		if p.nelis[mode].IsLeaderOf(role) {
			return witness.NoToken
		}
		return witness.No
	}
	if token, ok := p.nelis[mode].Token(role); ok {
		return token
	}
	return witness.No
}
