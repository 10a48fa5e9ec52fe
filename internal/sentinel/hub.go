package sentinel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"sync"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
)

const (
	// maxPlaces bounds the watched groups: each has its own clients.
	maxPlaces = 256
	// lingers is how long the hub goes on watching a group that has neither members nor remembered dead.
	lingers = time.Minute
	// expireEvery is how often the hub looks for dead members and groups that it can forget.
	expireEvery = 10 * time.Second
	// sayEvery is the least time between two log lines for the same kind of refusal.
	sayEvery = time.Minute
)

// Options configure a Hub.
type Options struct {
	// Open opens the logs of a place without waiting for them. If it fails, the members of the place are refused.
	Open func(Place, *slog.Logger) (elector.Log, error)
	// Allow has patterns, as of path.Match, of topics that may be watched, or of groups where there is
	// no topic. Empty: all.
	Allow  []string
	Name   string // for people
	Rules  func() Rules
	Now    func() clock.Instant
	Limit  int // how many members may be registered; 0: MaxMembers
	Logger *slog.Logger
}

// Hub connects the Registry with the Watches of the groups. Its methods may be called concurrently.
type Hub struct {
	opt  Options
	ctx  context.Context
	work sync.WaitGroup

	mu       sync.Mutex // guards what follows; held during no callbacks but forgotten and Taken
	registry *Registry
	places   map[Place]*place
	notify   map[string]*Teller   // by member: its connection, which is told of changes
	said     map[string]time.Time // by text: when a refusal was last logged

	forgotten func(process string) // called with mu held when a registered member is refused; set before first use
}

// Teller is the connection of one registration.
type Teller struct {
	Tell  func(Answer)     // sends an answer; called without the Hub's mutex
	Taken func(fresh bool) // called with the Hub's mutex held when the registration is accepted; nil: not called
}

// place is a watched group.
type place struct {
	runner *runner // nil until its log was opened
	cancel context.CancelFunc
	state  Answer
	unused time.Time // since when it has neither members nor remembered dead; zero: it has some
	deaths []Death   // deaths that were noted before there was a runner
}

// NewHub returns a Hub that works until ctx is done. Wait waits for its end.
func NewHub(ctx context.Context, opt Options) *Hub {
	if opt.Limit == 0 {
		opt.Limit = MaxMembers
	}
	h := &Hub{opt: opt, ctx: ctx, registry: NewRegistry(opt.Limit), places: map[Place]*place{}, notify: map[string]*Teller{}, forgotten: func(string) {}, said: map[string]time.Time{}}
	h.work.Go(h.sweep)
	return h
}

// Wait waits until all goroutines of the Hub have ended.
func (h *Hub) Wait() { h.work.Wait() }

// errNotAllowed: the topic matches none of Options.Allow.
var errNotAllowed = errors.New("the sentinel does not watch this topic (--allow)")

// errPlaces: too many groups are watched.
var errPlaces = fmt.Errorf("the sentinel watches %d groups, and no more", maxPlaces)

// Offer returns the answer to a registration that the member has not confirmed yet. It changes nothing.
func (h *Hub) Offer(reg Registration, proof Proof) Answer {
	h.mu.Lock()
	err := h.admits(reg)
	if err == nil {
		err = h.registry.Check(reg, proof)
	}
	h.mu.Unlock()
	if err != nil {
		return h.refuse(reg, err)
	}
	return Answer{State: Asked}
}

// Register registers a member that has confirmed its registration; tell will be told of changes. It
// returns the answer for the member. fresh is false if the pidfd of this member is known already.
func (h *Hub) Register(reg Registration, proof Proof, tell *Teller) (a Answer, fresh bool) {
	h.mu.Lock()
	err := h.admits(reg)
	if err == nil {
		fresh, err = h.registry.Register(reg, proof)
	}
	if err != nil {
		h.mu.Unlock()
		return h.refuse(reg, err), false
	}
	h.notify[reg.Process] = tell
	p := h.places[reg.Place()]
	if p == nil {
		p = h.start(reg)
	}
	p.unused = time.Time{}
	if tell.Taken != nil {
		tell.Taken(fresh)
	}
	a = h.answer(h.registry.members[reg.Process])
	h.mu.Unlock()
	return a, fresh
}

// admits returns an error if a registration's group may not be watched, or too many are. The caller holds the mutex.
func (h *Hub) admits(reg Registration) error {
	switch {
	case !h.allows(reg):
		return errNotAllowed
	case h.places[reg.Place()] == nil && len(h.places) >= maxPlaces:
		return errPlaces
	}
	return nil
}

// answer returns what the sentinel does for a member. The caller holds the mutex.
func (h *Hub) answer(m *member) Answer {
	p := h.places[m.Place()]
	switch {
	case p == nil:
		return Answer{State: Refused, Reason: "the group is not watched any more"}
	case p.state.State == Watching && !m.ready():
		return Answer{State: Registered} // its death would cost T
	}
	return p.state
}

// tell tells a member what the sentinel does for it, until nothing has changed since. If another goroutine
// tells the member something older meanwhile, that goroutine also goes on until nothing has changed.
func (h *Hub) tell(process string, t *Teller) {
	for last := (Answer{}); ; {
		h.mu.Lock()
		a, m := last, h.registry.members[process]
		if m != nil && h.notify[process] == t {
			a = h.answer(m)
		}
		h.mu.Unlock()
		if a == last {
			return
		}
		t.Tell(a)
		last = a
	}
}

func (h *Hub) allows(reg Registration) bool {
	name := reg.Topic
	if name == "" {
		name = reg.Group
	}
	for _, pattern := range h.opt.Allow {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return len(h.opt.Allow) == 0
}

// refuse returns a refusal, and logs it unless the same reason was logged within sayEvery.
func (h *Hub) refuse(reg Registration, err error) Answer {
	answer := Answer{State: Refused, Reason: err.Error()}
	if errors.Is(err, errFormer) {
		return answer // the member has given it up
	}
	now := time.Now()
	h.mu.Lock()
	if len(h.said) > 100 {
		clear(h.said)
	}
	due := now.Sub(h.said[err.Error()]) >= sayEvery
	if due {
		h.said[err.Error()] = now
	}
	h.mu.Unlock()
	if due {
		h.opt.Logger.Warn("a registration was refused", "reason", err, "topic", reg.Topic, "member_group", reg.Group, "by_name", reg.Name)
	}
	return answer
}

// start begins to watch a group. The caller holds the mutex.
func (h *Hub) start(reg Registration) *place {
	ctx, cancel := context.WithCancel(h.ctx)
	at := reg.Place()
	p := &place{cancel: cancel, state: Answer{State: Registered}}
	h.places[at] = p
	logger := h.opt.Logger.With("topic", at.Topic, "group", at.Group)
	h.work.Go(func() {
		defer cancel()
		err := h.follow(ctx, at, p, reg, logger)
		h.ended(at, p, err, ctx.Err() != nil, logger)
	})
	return p
}

// follow watches a group until ctx is done or its log has failed.
func (h *Hub) follow(ctx context.Context, at Place, p *place, reg Registration, logger *slog.Logger) error {
	log, err := h.opt.Open(at, h.opt.Logger)
	if err != nil {
		return err
	}
	rules := h.opt.Rules()
	rules.Group, rules.Small, rules.T, rules.Rho = at.Group, at.Small(), reg.T, reg.Rho
	r := newRunner(rules, at, log, h.opt.Now, logger, func() { h.change(at, p, Answer{State: Watching}) })
	h.mu.Lock()
	p.runner = r
	deaths := p.deaths
	p.deaths = nil
	h.mu.Unlock()
	for _, d := range deaths {
		r.died(d)
	}
	logger.Info("watching a group")
	return r.run(ctx)
}

// change sets the state of a place and tells its members.
func (h *Hub) change(at Place, p *place, a Answer) {
	h.mu.Lock()
	if h.places[at] != p {
		h.mu.Unlock()
		return
	}
	p.state = a
	told := map[string]*Teller{}
	for _, m := range h.registry.at(at) {
		if t := h.notify[m.Process]; t != nil {
			told[m.Process] = t
		}
	}
	h.mu.Unlock()
	for process, t := range told {
		h.tell(process, t)
	}
}

// ended forgets a place whose runner has ended. If its log has failed, it forgets and refuses the
// members, which then register again.
func (h *Hub) ended(at Place, p *place, err error, done bool, logger *slog.Logger) {
	var refused []*Teller
	h.mu.Lock()
	if h.places[at] == p {
		delete(h.places, at)
	}
	if !done {
		for _, m := range h.registry.at(at) {
			if t := h.notify[m.Process]; t != nil {
				refused = append(refused, t)
			}
			h.forget(m.Process) // before the refusal: a refused member may start commands that are not known here
			h.forgotten(m.Process)
		}
	}
	h.mu.Unlock()
	if done || err == nil {
		return
	}
	logger.Warn("a group cannot be watched", "error", err)
	for _, t := range refused {
		t.Tell(Answer{State: Refused, Reason: err.Error()})
	}
}

// forget forgets a member. The caller holds the mutex.
func (h *Hub) forget(process string) {
	h.registry.Goodbye(process)
	delete(h.notify, process)
}

// count counts the members of a group.
func (h *Hub) count(q query) (c Count) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for at, p := range h.places {
		if at.Topic != q.Topic || at.Group != q.Group {
			continue
		}
		for _, m := range h.registry.at(at) {
			if !m.fired {
				c.Registered++
			}
			if p.state.State == Watching && m.ready() {
				c.Watched++
			}
		}
	}
	return c
}

// lost notes that a member's connection has ended. It reports whether the member is still
// registered: if so, the caller keeps its pidfd.
func (h *Hub) lost(process string, tell *Teller) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.notify[process] == tell {
		delete(h.notify, process)
	}
	return h.registry.members[process] != nil
}

// Goodbye forgets a member, which has released its roles itself.
func (h *Hub) Goodbye(process string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(process)
}

// left forgets a member that has said goodbye on tell's connection, or whose connection the sentinel is
// about to end. It does nothing and returns false unless that connection is the one of the member's
// present registration.
func (h *Hub) left(process string, tell *Teller) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.notify[process] != tell {
		return false
	}
	h.forget(process)
	return true
}

// guard registers a command that may outlive its member. It returns the serial of the command's guard.
func (h *Hub) guard(g guardian) (serial uint64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.registry.Guard(g)
}

// settled notes that guards have registered for all commands of a registration.
func (h *Hub) settled(process string, number uint64) {
	h.mu.Lock()
	d, over := h.registry.Settled(process, number)
	h.mu.Unlock()
	if over {
		h.died(d)
	}
}

// clear notes that nothing is left of the command of a member's guard.
func (h *Hub) clear(process string, serial uint64) {
	h.mu.Lock()
	d, over := h.registry.Clear(process, serial)
	h.mu.Unlock()
	if over {
		h.died(d)
	}
}

// Fired notes that the pidfd of a member has become readable, and that what the member sent over the
// connection of a registration was read. stale reports that the member has a later registration: then
// nothing was noted.
func (h *Hub) Fired(process string, number uint64) (stale bool) {
	now := h.opt.Now().Mono
	h.mu.Lock()
	d, over, stale := h.registry.Fired(process, number, now)
	h.mu.Unlock()
	if over {
		h.died(d)
	}
	return stale
}

// died passes a death on to the Watch of the member's group.
func (h *Hub) died(d Death) {
	h.mu.Lock()
	delete(h.notify, d.Process)
	p := h.places[d.Place]
	var r *runner
	if p != nil {
		if r = p.runner; r == nil && len(p.deaths) < h.opt.Limit {
			p.deaths = append(p.deaths, d)
		}
	}
	h.mu.Unlock()
	h.opt.Logger.Info("a member has died", "process", d.Process, "by_name", d.Name, "topic", d.Place.Topic, "member_group", d.Place.Group)
	if r != nil {
		r.died(d)
	}
}

// sweep calls expire at intervals, until the Hub ends.
func (h *Hub) sweep() {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-tick.C:
			h.expire(time.Now())
		}
	}
}

// expire forgets dead members that were never cleared, and groups that nobody has needed for lingers.
func (h *Hub) expire(now time.Time) {
	mono := h.opt.Now().Mono
	h.mu.Lock()
	h.registry.Expire(mono)
	idle := map[Place]*place{}
	for at, p := range h.places {
		if len(h.registry.at(at)) == 0 && p.runner != nil {
			idle[at] = p
		}
	}
	h.mu.Unlock()
	for at, p := range idle {
		if !p.runner.idle() {
			continue
		}
		h.mu.Lock()
		switch {
		case h.places[at] != p || len(h.registry.at(at)) > 0:
		case p.unused.IsZero():
			p.unused = now
		case now.Sub(p.unused) >= lingers:
			delete(h.places, at)
			p.cancel()
		}
		h.mu.Unlock()
	}
}
