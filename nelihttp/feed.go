package nelihttp

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli"
)

const (
	// maxStreams is the largest number of streams that one handler serves at a time.
	maxStreams = 256
	// pace is the least time between two looks at who holds which roles, by the feed or for requests. A look
	// at a million roles takes some 10 ms, so either takes at most 1/restPerLook of the time.
	pace        = 100 * time.Millisecond
	restPerLook = 20
)

// feed finds out what has changed, for all streams and the time line together. A stream
// has no queue. It remembers the newest version that it wrote, and then asks for what is newer. So a
// slow stream misses intermediate states, as a slow consumer of Watch does.
type feed struct {
	src   source
	known *shared[*glance]
	past  *history

	mu      sync.Mutex
	streams int
	kept    bool     // it runs as long as the process, for the time line
	run     *feedRun // while there are streams, or kept
}

func newFeed(src source, known *shared[*glance], past *history) *feed {
	return &feed{src: src, known: known, past: past}
}

// keep follows changes until the process is no longer live, whether there are streams or not.
func (f *feed) keep() {
	f.mu.Lock()
	f.kept = true
	run := f.run
	if run == nil {
		run = startFeed(f.src, f.known, f.past)
		f.run = run
	}
	f.mu.Unlock()
}

// join adds a stream. leave must be called once; if it ends the run, it returns when the run's
// goroutines have ended. ok is false if there are too many streams.
func (f *feed) join() (run *feedRun, leave func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams == maxStreams {
		return nil, nil, false
	}
	f.streams++
	if f.run == nil {
		f.run = startFeed(f.src, f.known, f.past)
	}
	run = f.run
	return run, func() { f.leave(run) }, true
}

// full reports whether join would refuse a stream.
func (f *feed) full() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.streams == maxStreams
}

func (f *feed) leave(run *feedRun) {
	f.mu.Lock()
	f.streams--
	last := f.streams == 0 && !f.kept
	if last {
		f.run = nil // the next stream starts a new run
	}
	f.mu.Unlock()
	if last {
		run.stop()
		<-run.ended
	}
}

// feedRun is one period in which the feed runs.
type feedRun struct {
	src   source
	known *shared[*glance]
	stop  context.CancelFunc
	ended chan struct{} // closed when its goroutines have returned: the process is no longer live, or no stream is left

	mu      sync.Mutex
	version uint64
	rows    []row
	news    chan struct{} // closed at the next version
}

// row is a Standing and the version of its last change.
type row struct {
	standing neli.Standing
	key      rowKey
	roles    []int
	version  uint64
}

func startFeed(src source, known *shared[*glance], past *history) *feedRun {
	ctx, stop := context.WithCancel(context.Background())
	f := &feedRun{src: src, known: known, stop: stop, ended: make(chan struct{}), news: make(chan struct{})}
	changed := make(chan struct{}, 1)
	changed <- struct{}{} // first, the present state
	var work sync.WaitGroup
	work.Go(func() {
		defer stop()
		for range src.Watch(ctx) {
			select {
			case changed <- struct{}{}:
			default: // a look is due already
			}
		}
	})
	work.Go(func() {
		past.resume()
		defer func() { past.pause(time.Now()) }()
		f.look(ctx, changed)
	})
	go func() {
		work.Wait()
		close(f.ended)
	}()
	return f
}

// look updates the rows after each change, until ctx is done. With many roles the library's Standings may
// be up to T/50 older than the change, so look then updates them once more. It also looks a heartbeat (five
// pauses, if longer) after the last look, since Watch does not report that a holder falls silent.
func (f *feedRun) look(ctx context.Context, changed <-chan struct{}) {
	var again <-chan time.Time
	beat := time.NewTimer(beatOf(f.src.Config()))
	defer beat.Stop()
	for {
		news := false
		select {
		case <-changed:
			news = true
		case <-again:
		case <-beat.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		f.take(f.known.fresh())
		pause := restAfter(time.Since(began))
		beat.Reset(max(5*pause, beatOf(f.src.Config())))
		if news {
			again = time.After(pause + f.src.Config().HeartbeatTimeout/50)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// take updates the rows from the present Standings, and notes which have changed.
func (f *feedRun) take(g *glance) {
	now := g.standings
	f.mu.Lock()
	defer f.mu.Unlock()
	known := make(map[rowKey]row, len(f.rows))
	for _, r := range f.rows {
		known[r.key] = r
	}
	changed := len(now) != len(f.rows)
	rows := make([]row, len(now))
	for i, s := range now {
		rows[i] = row{standing: s, key: keyOf(s, g.who(s).kind), roles: slices.Collect(s.Roles()), version: f.version + 1}
		if old, ok := known[rows[i].key]; ok && slices.Equal(old.roles, rows[i].roles) {
			rows[i].version = old.version
		} else {
			changed = true
		}
	}
	if !changed {
		return
	}
	f.rows = rows
	f.version++
	close(f.news)
	f.news = make(chan struct{})
}

// rowKey has the fields whose change, like that of the roles, counts as a change of a Standing. Its age does not.
type rowKey struct {
	partition int
	status    neli.Status
	shown     kind // whether the holder is silent
	member    string
	token     int64
	since     time.Time // if there is no token: on small logs it distinguishes the terms of a holder
}

func keyOf(s neli.Standing, shown kind) rowKey {
	key := rowKey{partition: s.Partition, status: s.Status, shown: shown, member: s.Holder.Member, token: s.Holder.Token}
	if key.token == 0 {
		key.since = s.Holder.Since
	}
	return key
}

// since returns what has changed after a version, in no particular order. If there are too many Standings it
// returns none, and many is true. news is closed at the next change.
func (f *feedRun) since(version uint64) (changes []neli.Standing, many bool, newest uint64, news <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if many = len(f.rows) > maxStandings; !many {
		for _, r := range f.rows {
			if r.version > version {
				changes = append(changes, r.standing)
			}
		}
	}
	return changes, many, f.version, f.news
}
