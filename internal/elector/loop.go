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
	"github.com/goneli/neli/internal/elector/prefer"
	"github.com/goneli/neli/internal/elector/prepare"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/watch"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// pollSlice is the longest single wait for an entry. It limits how long the end of a context takes to be noticed.
const pollSlice = 100 * time.Millisecond

// Elector runs a Node. It owns the Node's lock, the goroutines and the I/O, and decides nothing.
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

	mu        sync.Mutex // guards the fields below; never held during calls of the application's code
	node      *Node
	scheduled clock.Mono // the next Tick
	finished  bool
	waiting   map[int]chan error // callers that wait for an Outcome, by its number

	readers sync.Mutex // readers of the node wait here for each other, so that a step waits for one of them at most

	bell     *watch.Bell // rings when Holder, Members or Standings may have changed
	album    watch.Album
	opinions prefer.Calls
	prepares *prepare.Calls
}

// NewElector returns an Elector that Run starts. now reads all clocks.
func NewElector(set *Settings, log Log, nom Nominator, terms *term.Table, now func() clock.Instant, logger *slog.Logger) *Elector {
	e := &Elector{log: log, nom: nom, now: now, logger: logger, terms: terms, node: New(set, terms),
		wakeup: make(chan struct{}, 1), done: make(chan struct{}), asked: make(chan struct{}, 1), waiting: map[int]chan error{},
		bell: watch.NewBell(), opinions: prefer.Calls{Prefer: set.Preference, Logger: logger}}
	returned := func(b prepare.Begin, ok bool) { e.do(func(n *Node, now clock.Instant) { n.warm.Returned(b, ok, now) }) }
	e.prepares = prepare.New(set.Prepare, set.PrepareEnds, returned, logger)
	return e
}

// errFinished ends the goroutines of an Elector that has closed.
var errFinished = errors.New("finished")

// ErrEnded is returned by calls that wait for an Outcome when Run returns.
var ErrEnded = errors.New("the elector has ended")

// Run works until ctx is done, or until the Elector was told to close and holds nothing any more,
// or until a permanent error, which it returns. Then no goroutine of the Elector is left but those
// that Wait awaits.
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
	work.Go(func() error { e.bell.Announce(ctx.Done()); return nil })
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
	e.prepares.Stop()
	why := term.Fatal
	if err == nil {
		why = term.Closing
	}
	e.mu.Lock()
	e.node.End(why)
	e.mu.Unlock()
	return err
}

// read passes the log's entries to the Node until ctx is done, the log fails or the Node finishes.
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
			r, bad = entry.Decode(e.node.Codec(entry.ID))
		}
		e.do(func(n *Node, now clock.Instant) { n.Read(entry, r, bad, now) })
		if err := e.over(); err != nil {
			return err
		}
		if e.terms.Fresh() {
			// Let goroutines that this entry has woken run first. Next may call C code, which can
			// keep this processor for up to 10 ms.
			runtime.Gosched()
		}
	}
	return nil
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

// Wait returns when no call of the application's code is left. Call it after Run.
func (e *Elector) Wait() {
	e.opinions.Wait()
	e.prepares.Wait()
}

// consult has the application's Preference called, without the lock, for members that are new or have
// changed their description. Until there are results, these members are not preferred.
func (e *Elector) consult() {
	if e.opinions.Busy() {
		return
	}
	e.mu.Lock()
	ask, roles := e.node.Unasked()
	e.mu.Unlock()
	e.opinions.Ask(ask, roles, clock.LongestStep(e.node.set.T), func(m roster.Member, prefs []int32) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.node.planner.Preferred(m, prefs)
	}, func() { watch.Ring(e.wakeup) }) // Tick plans with the results
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
	if e.nom != nil {
		e.nom.Join(r.Join) // under the lock, so that the last call passes the newest decision
	}
	earlier := at < e.scheduled || e.scheduled <= now.Mono || r.Finished
	e.scheduled = at
	if r.Changed {
		e.bell.Ring()
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
		watch.Ring(e.wakeup)
	}
	return r.WakeIn
}

// look is hold for callers that only read. There may be very many at once, and a step must not wait for all of them.
func (e *Elector) look() (release func()) {
	e.readers.Lock()
	held := e.hold()
	return func() {
		held()
		e.readers.Unlock()
	}
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

func (e *Elector) carryOut(r Ready) {
	for _, note := range r.Notes {
		e.logger.Log(context.Background(), note.Level, note.Text, note.Args...)
	}
	if r.Verify {
		e.log.Verify()
	}
	for _, p := range r.Back {
		e.log.Back(p, func() bool { return e.unknown(p) })
	}
	if r.Requested {
		watch.Ring(e.asked)
	}
	for _, a := range r.Append {
		e.append(a)
	}
	e.prepares.Do(r.Prepare)
}

// unknown reports whether the fold of log p is unknown.
func (e *Elector) unknown(p int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.node.channels[p].Log.Known()
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
