package elector

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// pollSlice is how long a reader waits for something to come: it bounds how long the end
// of a context waits for it.
const pollSlice = 100 * time.Millisecond

// Elector runs a Node: it owns the only mutex, the goroutines and the I/O. It decides
// nothing. Its methods may be called concurrently.
type Elector struct {
	log    Log
	nom    Nominator // nil: any process may claim
	now    func() clock.Instant
	logger *slog.Logger
	terms  *term.Table
	wakeup chan struct{} // wakes the goroutine that calls Tick
	done   chan struct{} // closed when Run returns
	asked  chan struct{} // has an element when there may be a request for the application

	mu        sync.Mutex // guards what follows; held across no call of anybody else's code
	node      *Node
	scheduled clock.Mono // when Tick will be called by itself
	finished  bool
	waiting   map[int]chan error // Transfers and requests, by number
	watchers  map[chan struct{}]struct{}

	surveyed surveyed
}

// NewElector returns an Elector that does nothing yet. now reads all clocks.
func NewElector(set *Settings, log Log, nom Nominator, terms *term.Table, now func() clock.Instant, logger *slog.Logger) *Elector {
	return &Elector{log: log, nom: nom, now: now, logger: logger, terms: terms, node: New(set, terms),
		wakeup: make(chan struct{}, 1), done: make(chan struct{}), asked: make(chan struct{}, 1), waiting: map[int]chan error{}, watchers: map[chan struct{}]struct{}{}}
}

// errFinished ends the work of an Elector that is closing and has nothing more to wait
// for.
var errFinished = errors.New("finished")

// ErrEnded is returned by Transfer and Ask when Run has returned.
var ErrEnded = errors.New("the elector has ended")

// Run works until ctx is done, until it is to close and holds nothing any more, or
// returns the error that ended it for good. When it returns no goroutine of its is left.
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

// read gives the Node what the log has until ctx is done or the log ends.
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
			// Next may be a call of C, which keeps its processor for up to 10 ms, and those who
			// are woken to be told would wait for that: they come first.
			runtime.Gosched()
		}
	}
	return nil
}

// decode reads a record; of one that cannot be read, only what must be known all the same.
func (e *Elector) decode(entry Entry) (*lease.Record, error) {
	codec := e.node.Codec(entry.ID)
	r, err := codec.Decode(entry.Value)
	if errors.Is(err, lease.ErrNewer) && entry.ID != "" {
		r = &lease.Record{Ballot: codec.Ballot(entry.Value)}
	}
	return r, err
}

// tick calls Tick whenever time alone gives reason to.
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

// over returns errFinished when there is nothing more to do.
func (e *Elector) over() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.finished {
		return errFinished
	}
	return nil
}

// do gives the Node one input, and carries out what it says without the lock. It returns
// how long nothing will be due.
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

// hold locks e.mu, and returns what unlocks it and counts for how long it was locked:
// meanwhile this process reads nothing, and says nothing.
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

// unknown reports whether it is not known who holds what of a log.
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

// consult asks the user's Preference about members that it was not asked about yet:
// without the lock, as it is the user's code.
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

// Set says what is wanted from now on. It does not block: what follows from it is carried
// out by the goroutine that calls Tick, as the caller may hold locks of its own. Those who
// wait for changes of the term table look again, as roles may be wanted no more.
func (e *Elector) Set(d Desired) {
	release := e.hold()
	e.node.Set(d, e.now())
	release()
	ring(e.wakeup)
	e.terms.Ring()
}

// Collect returns what the application must be told now and counts it as told.
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

// Peek returns the losses and revocations that Collect would return, and counts nothing
// as told.
func (e *Elector) Peek() []term.Change {
	defer e.hold()()
	return e.terms.Peek(e.now())
}

// Drained says that the application has finished the work of the terms of units with
// this token, which it was asked to give up.
func (e *Elector) Drained(units []int, token int64) {
	e.do(func(n *Node, now clock.Instant) { n.Drained(units, token, now) })
}

// Transfer hands a role over to a member, and waits for the outcome until ctx is done,
// whose end does not stop it.
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

// Idle reports whether nothing is held, claimed, or being released.
func (e *Elector) Idle() bool {
	defer e.hold()()
	return !e.node.Busy(e.now())
}

// Stats returns what was counted so far, and how things are.
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

// slices calls look, which looks at a slice of all roles, until there are no more. The lock is
// free in between, so that nothing else that this process has to do waits for all of them. It
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

// Holder returns who holds a role, as far as was read, and the time of the answer.
func (e *Elector) Holder(role int) (lease.Grantee, clock.Instant, bool) {
	defer e.hold()()
	now := e.now()
	g, ok := e.node.Holder(role, now)
	return g, now, ok
}

// Members returns the processes of the group, and the time of the answer.
func (e *Elector) Members() ([]Member, clock.Instant) {
	defer e.hold()()
	now := e.now()
	return e.node.Members(now), now
}

// Changes returns what w was not told yet, and the time of the answer.
func (e *Elector) Changes(w *Watcher) ([]Standing, clock.Instant) {
	now := e.slices(func(n *Node, now clock.Instant) bool { return n.changes(w, now) })
	return w.take(), now
}

// Standings returns what is known of all roles, and the time of the answer. Of more than
// surveyRoles, those who ask within T/50 of each other are given the same: it takes a long time,
// and many may ask.
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

// surveyed is the last answer of Standings, if it is worth keeping. Its lock is held while one
// is made: who asks meanwhile gets that one.
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

// Notify returns a channel that has an element whenever what others are told may have
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
