package elector

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// pollSlice is the longest single wait for an entry. It limits how long the end of a context takes
// to be noticed.
const pollSlice = 100 * time.Millisecond

// Elector runs a Node. It owns the only mutex, the goroutines and the I/O, and decides nothing.
// Its methods may be called concurrently.
type Elector struct {
	log    Log
	nom    Nominator // nil: any process may claim
	now    func() clock.Instant
	logger *slog.Logger
	terms  *term.Table
	wakeup chan struct{} // wakes the goroutine that calls Tick
	done   chan struct{} // closed when Run returns
	asked  chan struct{} // has an element if there may be a request for the application

	mu        sync.Mutex // guards the fields below; never held during calls of other code
	node      *Node
	scheduled clock.Mono // the next Tick
	finished  bool
	waiting   map[int]chan error // callers of Transfer and Ask, by number
	watchers  map[chan struct{}]struct{}

	surveyed surveyed
}

// NewElector returns an Elector that Run starts. now reads all clocks.
func NewElector(set *Settings, log Log, nom Nominator, terms *term.Table, now func() clock.Instant, logger *slog.Logger) *Elector {
	return &Elector{log: log, nom: nom, now: now, logger: logger, terms: terms, node: New(set, terms),
		wakeup: make(chan struct{}, 1), done: make(chan struct{}), asked: make(chan struct{}, 1), waiting: map[int]chan error{}, watchers: map[chan struct{}]struct{}{}}
}

// errFinished ends the goroutines of an Elector that has closed.
var errFinished = errors.New("finished")

// ErrEnded is returned by Transfer and Ask when Run has returned.
var ErrEnded = errors.New("the elector has ended")

// Run works until ctx is done, or until the Elector was told to close and holds nothing any more,
// or until a permanent error, which it returns. No goroutine of the Elector is left when Run
// returns.
func (e *Elector) Run(ctx context.Context) error {
	defer close(e.done)
	defer e.log.Close()
	if e.nom != nil {
		defer e.nom.Close()
	}
	partitions, id, err := e.log.Open(ctx)
	if err != nil {
		return err
	}
	e.do(func(n *Node, now clock.Instant) {
		n.Open(partitions, id, now)
		n.Tick(now)
	})
	work, ctx := errgroup.WithContext(ctx)
	if opened := e.node.set.Opened; opened != nil {
		work.Go(func() error { opened(ctx, id); return nil })
	}
	work.Go(func() error { return e.read(ctx) })
	work.Go(func() error { return e.tick(ctx) })
	work.Go(func() error { return e.log.Watch(ctx) })
	if e.nom != nil {
		work.Go(func() error {
			return e.nom.Run(ctx, func(partitions []int, lost bool) {
				e.do(func(n *Node, now clock.Instant) { n.Nominate(partitions, lost, now) })
			})
		})
	}
	if err = work.Wait(); errors.Is(err, errFinished) {
		err = nil
	}
	why := term.Fatal
	if err == nil {
		why = term.Closing
	}
	e.mu.Lock()
	e.node.End(why)
	e.mu.Unlock()
	return err
}

// read passes the log's entries to the Node until ctx is done or the log fails.
func (e *Elector) read(ctx context.Context) error {
	for ctx.Err() == nil {
		entry, ok, err := e.log.Next(ctx, pollSlice)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		var r *lease.Record
		var bad error
		if !entry.Reset && !entry.Alive {
			r, bad = e.decode(entry)
		}
		e.do(func(n *Node, now clock.Instant) { n.Read(entry, r, bad, now) })
		if err := e.over(); err != nil {
			return err
		}
		if e.terms.Fresh() {
			// Let goroutines that this entry has woken run first. Next may be a call of C, which
			// can keep this processor for up to 10 ms.
			runtime.Gosched()
		}
	}
	return nil
}

// decode decodes a record. Of a record that cannot be read it returns the parts that matter
// nevertheless.
func (e *Elector) decode(entry Entry) (*lease.Record, error) {
	codec := e.node.Codec(entry.ID)
	r, err := codec.Decode(entry.Value)
	if errors.Is(err, lease.ErrNewer) && entry.ID != "" {
		r = &lease.Record{Ballot: codec.Ballot(entry.Value)}
	}
	return r, err
}

// tick calls Tick whenever it is due.
func (e *Elector) tick(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-e.wakeup:
		}
		e.consult()
		in := e.do(func(n *Node, now clock.Instant) { n.Tick(now) })
		if err := e.over(); err != nil {
			return err
		}
		timer.Reset(in)
	}
}

// over returns errFinished when the Node has finished.
func (e *Elector) over() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.finished {
		return errFinished
	}
	return nil
}

// do passes one input to the Node under the lock, and carries out its output without the lock. It
// returns the time until the next Tick is due.
func (e *Elector) do(input func(*Node, clock.Instant)) time.Duration {
	release := e.hold()
	now := e.now()
	input(e.node, now)
	r := e.node.Ready(now)
	e.finished = e.finished || r.Finished
	at := now.Mono.Add(r.WakeIn)
	earlier := at < e.scheduled || e.scheduled <= now.Mono || r.Finished
	e.scheduled = at
	if r.Changed {
		for w := range e.watchers {
			ring(w)
		}
	}
	var answers []chan error
	for _, o := range r.Outcomes {
		answers = append(answers, e.waiting[o.ID])
		delete(e.waiting, o.ID)
	}
	release()
	for i, ch := range answers {
		if ch != nil {
			ch <- r.Outcomes[i].Err
		}
	}
	e.carryOut(r)
	if earlier {
		ring(e.wakeup)
	}
	return r.WakeIn
}

// hold locks e.mu. release unlocks it and counts how long it was locked, since the process reads
// and appends nothing meanwhile.
func (e *Elector) hold() (release func()) {
	e.mu.Lock()
	began := time.Now()
	return func() {
		e.node.counts.Steps.Add(time.Since(began), 1)
		e.mu.Unlock()
	}
}

func ring(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (e *Elector) carryOut(r Ready) {
	for _, note := range r.Notes {
		e.logger.Log(context.Background(), note.Level, note.Text, note.Args...)
	}
	if e.nom != nil {
		e.nom.Join(r.Join)
	}
	if r.Verify {
		e.log.Verify()
	}
	for _, p := range r.Back {
		e.log.Back(p, func() bool { return e.unknown(p) })
	}
	if r.Requested {
		ring(e.asked)
	}
	for _, a := range r.Append {
		e.append(a)
	}
}

// unknown reports whether the fold of log p is unknown.
func (e *Elector) unknown(p int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.node.channels[p].log.Known()
}

func (e *Elector) append(a Append) {
	if e.logger.Enabled(context.Background(), slog.LevelDebug) {
		e.logger.Debug("append", "partition", a.Partition, "kind", a.Record.Kind, "read", a.Record.Read, "seq", a.Record.Seq,
			"roles", len(a.Record.Roles))
	}
	report := func(err error) {
		e.do(func(n *Node, now clock.Instant) { n.Acked(a, err, now) })
	}
	to := Address{Partition: a.Partition, ID: a.ID, Ballot: a.Record.Ballot}
	if err := e.log.Append(to, e.node.Codec(a.ID).Encode(&a.Record), report); err != nil {
		report(err)
	}
}

// consult calls the user's Preference for members for which it was not called yet, without the
// lock.
func (e *Elector) consult() {
	e.mu.Lock()
	ask, roles := e.node.Unasked()
	prefer := e.node.set.Preference
	e.mu.Unlock()
	for _, m := range ask {
		prefs := make([]int32, roles)
		for role := range prefs {
			prefs[role] = int32(min(max(prefer(m, role), -1<<31), 1<<31-1))
		}
		e.mu.Lock()
		e.node.planner.preferred(m.Process, prefs)
		e.mu.Unlock()
	}
}

// Set changes what the application wants. It does not block, because its caller may hold locks:
// the goroutine that calls Tick carries out the consequences. It wakes those who wait for the term
// table, since fewer roles may be wanted.
func (e *Elector) Set(d Desired) {
	release := e.hold()
	e.node.Set(d, e.now())
	release()
	ring(e.wakeup)
	e.terms.Ring()
}

// Collect returns the changes for the application and marks them as delivered.
func (e *Elector) Collect() []term.Change {
	defer e.hold()()
	changes := e.terms.Collect(e.now())
	for _, c := range changes {
		if c.Kind == term.Lost || c.Kind == term.Gone {
			e.node.Delivered(c.Units)
			ring(e.wakeup)
		}
	}
	return changes
}

// Peek returns the losses and revocations that Collect would return, and marks none.
func (e *Elector) Peek() []term.Change {
	defer e.hold()()
	return e.terms.Peek(e.now())
}

// Drained tells the Elector that the application has finished the work of the terms with this
// token on these units. It frees the lock after each surveyRoles of them. The check no longer finds
// any of them led when it returns.
func (e *Elector) Drained(units []int, token int64) {
	for some := range slices.Chunk(units, surveyRoles) {
		e.do(func(n *Node, now clock.Instant) { n.Drained(some, token, now) })
	}
}

// Transfer hands a role over to a member, and waits for the outcome until ctx is done. The end of
// ctx does not stop the hand-over.
func (e *Elector) Transfer(ctx context.Context, role int, to string) error {
	done := make(chan error, 1)
	var err error
	id := 0
	e.do(func(n *Node, now clock.Instant) {
		if id, err = n.Transfer(role, to, now); err == nil {
			e.waiting[id] = done
		}
	})
	if err != nil {
		return err
	}
	select {
	case err = <-done:
		return err
	case <-e.done:
		return ErrEnded
	case <-ctx.Done():
		e.mu.Lock()
		delete(e.waiting, id)
		e.mu.Unlock()
		return context.Cause(ctx)
	}
}

// Idle reports whether this process holds, claims and releases nothing.
func (e *Elector) Idle() bool {
	defer e.hold()()
	return !e.node.Busy(e.now())
}

// Stats returns the counters and the current state.
func (e *Elector) Stats() (s Stats) {
	var c headcount
	e.slices(func(n *Node, now clock.Instant) (more bool) {
		if more = n.headcount(&c, now); !more {
			s = n.stats(&c, now)
		}
		return more
	})
	return s
}

// slices calls look for one slice of the roles after the other, until look returns false. It frees
// the lock between two slices, so that this process's other work does not wait for all of them. It
// returns the time of the last look.
func (e *Elector) slices(look func(*Node, clock.Instant) (more bool)) (now clock.Instant) {
	for more := true; more; {
		func() {
			defer e.hold()()
			now = e.now()
			more = look(e.node, now)
		}()
	}
	return now
}

// Holder returns the known holder of a role, and the time of the answer.
func (e *Elector) Holder(role int) (lease.Grantee, clock.Instant, bool) {
	defer e.hold()()
	now := e.now()
	g, ok := e.node.Holder(role, now)
	return g, now, ok
}

// Members returns the known members, and the time of the answer.
func (e *Elector) Members() ([]Member, clock.Instant) {
	defer e.hold()()
	now := e.now()
	return e.node.Members(now), now
}

// Changes returns what has changed since w's last call, and the time of the answer.
func (e *Elector) Changes(w *Watcher) ([]Standing, clock.Instant) {
	now := e.slices(func(n *Node, now clock.Instant) bool { return n.changes(w, now) })
	return w.take(), now
}

// Standings returns what is known of all roles, and the time of the answer. If there are more than
// surveyRoles roles, calls within T/50 of each other get the same answer, since it takes long and
// many may ask.
func (e *Elector) Standings() ([]Standing, clock.Instant) {
	s := &e.surveyed
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := clock.LongestStep(e.node.set.T)
	if now := e.now(); s.last != nil && now.Age(s.at) < fresh {
		return s.last.out, now
	}
	v, slices := &survey{}, 0
	s.at = e.slices(func(n *Node, now clock.Instant) bool { slices++; return n.survey(v, now) })
	if s.last = nil; slices > 1 {
		s.last = v
		time.AfterFunc(fresh, func() { s.forget(v) }) // it may be large
	}
	return v.out, s.at
}

// surveyed keeps the last answer of Standings for a short time. Its lock is held while an answer
// is made, so that concurrent callers get that one.
type surveyed struct {
	mu   sync.Mutex
	last *survey
	at   clock.Instant
}

func (s *surveyed) forget(v *survey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == v {
		s.last = nil
	}
}

// Notify returns a channel that gets an element whenever Holder, Members or Standings may have
// changed, and a function that ends that.
func (e *Elector) Notify() (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watchers[ch] = struct{}{}
	return ch, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.watchers, ch)
	}
}
