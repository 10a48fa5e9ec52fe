package providertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
)

// LogsBed gives one test access to small logs, which are new and empty: each test needs logs of its own. Each
// function returns when its effect is complete, and fails the test if it cannot do its work.
type LogsBed struct {
	// Provider returns the logs as seen by a new process with that name.
	Provider func(t *testing.T, name string) kafka.SmallLogs
	// Settings are those with which all processes open the logs, except for Name and Logger.
	Settings kafka.LogSettings
	// Restart stops the host of a log and starts it again, so that the log is empty.
	Restart func(t *testing.T, log int)
	// Stop stops the host of a log.
	Stop func(t *testing.T, log int)
}

// LogsHarness calls test once with a bed for it, in whatever environment that needs.
type LogsHarness func(t *testing.T, test func(t *testing.T, b LogsBed))

// RunLogs tests the contract of [kafka.LogSet], each point of it as a subtest: what any small logs must do
// so that leases can rely on them. It cannot test that two incarnations of one log never serve at the same
// time.
func RunLogs(t *testing.T, h LogsHarness) {
	for _, p := range []struct {
		name string
		test func(t *testing.T, b LogsBed)
	}{
		{"their number is odd, and the same for all", logsNumber},
		{"each log begins with a reset", logsBegin},
		{"all processes read the records in the same order, each once", logsOrder},
		{"a process that joins later reads on in the same order", logsNewcomer},
		{"a process that stood still misses no record without a reset", logsStandstill},
		{"a record for another incarnation is refused", logsStranger},
		{"a member with another T is refused", logsDisagree},
		{"a log that was restarted is empty, and has another id", logsRestarted},
		{"a silent log sends signs of life", logsAlive},
		{"a stopped log accepts nothing, and the others continue", logsGone},
		{"a reset has the largest ballot, or none", logsTop},
		{"Next times out, and ends with its context", logsNext},
		{"Close makes all reports, and ends everything", logsClose},
	} {
		t.Run(p.name, func(t *testing.T) { h(t, p.test) })
	}
}

// follower is a process that reads all logs, and checks what it reads against the contract.
type follower struct {
	kafka.LogSet
	stop func()        // ends reading, then closes
	turn chan struct{} // full while Next runs, or while a test keeps it from being called

	mu      sync.Mutex
	logs    []followed
	wrong   []string
	changed chan struct{}
}

// followed is what was read from one log since its last reset.
type followed struct {
	id             string
	from, next     int64
	records        []string
	resets, alives int
	heard          []time.Time // when signs of life came; like alives, over all resets
	top            int64
}

func (b LogsBed) open(t *testing.T, name string) kafka.LogSet {
	t.Helper()
	s := b.Settings
	s.Name, s.Logger = name, slog.New(slog.DiscardHandler)
	set, err := b.Provider(t, name).SmallLogs(t.Context(), s)
	require.NoError(t, err)
	return set
}

// follow opens the logs and reads them until the test ends, or stop is called.
func (b LogsBed) follow(t *testing.T, name string) *follower {
	t.Helper()
	f := &follower{LogSet: b.open(t, name), changed: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
	f.logs = make([]followed, f.Logs())
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() {
		for ctx.Err() == nil {
			select {
			case f.turn <- struct{}{}:
			case <-ctx.Done(): // a test may have failed while it kept this process from calling Next
				return
			}
			e, ok, err := f.Next(ctx, time.Second)
			<-f.turn
			if err != nil {
				f.take(func() { f.wrong = append(f.wrong, err.Error()) })
				return
			} else if ok {
				f.take(func() { f.entry(e) })
			}
		}
	})
	f.stop = sync.OnceFunc(func() {
		cancel()
		reading.Wait()
		assert.NoError(t, f.Close())
		assert.Empty(t, f.wrong)
	})
	t.Cleanup(f.stop)
	f.await(t, "each log begins", func(l followed) bool { return l.resets > 0 })
	return f
}

func (f *follower) take(change func()) {
	f.mu.Lock()
	change()
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// entry checks an entry against the contract.
func (f *follower) entry(e kafka.LogEntry) {
	bad := func(format string, args ...any) { f.wrong = append(f.wrong, fmt.Sprintf(format, args...)) }
	if e.Log < 0 || e.Log >= len(f.logs) || e.ID == "" {
		bad("an entry of log %d of %d, id %q", e.Log, len(f.logs), e.ID)
		return
	}
	l := &f.logs[e.Log]
	switch {
	case e.Kind == kafka.LogReset:
		if e.Offset < 0 || e.Offset > e.End || e.First > e.Offset {
			bad("log %d begins at %d, has %d to %d", e.Log, e.Offset, e.First, e.End)
		}
		*l = followed{id: e.ID, from: e.Offset, next: e.Offset, resets: l.resets + 1, alives: l.alives, heard: l.heard, top: e.Top}
	case e.ID != l.id:
		bad("log %d: an entry of %s, reading %s", e.Log, e.ID, l.id)
	case e.Kind == kafka.LogAlive:
		l.heard = append(l.heard, time.Now())
		if l.alives++; e.End < l.next {
			bad("log %d ends at %d, and %d was read", e.Log, e.End, l.next-1)
		}
	case e.Kind != kafka.LogRecord || e.Offset != l.next:
		bad("log %d: kind %d at %d instead of a record at %d", e.Log, e.Kind, e.Offset, l.next)
	default:
		l.next++
		l.records = append(l.records, string(e.Value))
		clear(e.Value) // the receiver owns it
	}
}

// await waits until ok holds for every log.
func (f *follower) await(t *testing.T, what string, ok func(l followed) bool) {
	t.Helper()
	late := time.After(patience)
	for {
		f.mu.Lock()
		missing := slices.IndexFunc(f.logs, func(l followed) bool { return !ok(l) })
		f.mu.Unlock()
		if missing < 0 {
			return
		}
		select {
		case <-f.changed:
		case <-late:
			require.FailNow(t, "not in time: "+what, "log %d: %+v; %q", missing, f.of(missing), f.wrong)
		}
	}
}

func (f *follower) of(log int) followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.logs[log]
}

// put appends a record to the present incarnation of a log, and waits for the report.
func (f *follower) put(t *testing.T, log int, value string, ballot int64) {
	t.Helper()
	require.NoError(t, f.report(t, log, f.of(log).id, value, ballot))
}

// report appends a record, and returns the error of Append or of the report.
func (f *follower) report(t *testing.T, log int, id, value string, ballot int64) error {
	t.Helper()
	said := make(chan error, 1)
	var appending sync.Mutex // a report from within Append would deadlock
	appending.Lock()
	err := f.Append(log, id, []byte(value), ballot, func(err error) {
		appending.Lock()
		defer appending.Unlock()
		said <- err
	})
	appending.Unlock()
	if err != nil {
		return err
	}
	select {
	case err := <-said:
		return err
	case <-time.After(patience):
		require.FailNow(t, "a record was never reported")
		return nil
	}
}

func logsNumber(t *testing.T, b LogsBed) {
	one, two := b.open(t, "one"), b.open(t, "two")
	defer func() { assert.NoError(t, errors.Join(one.Close(), two.Close())) }()
	require.Equal(t, 1, one.Logs()%2)
	require.LessOrEqual(t, one.Logs(), 7)
	require.Equal(t, one.Logs(), two.Logs())
}

func logsBegin(t *testing.T, b LogsBed) {
	f := b.follow(t, "one")
	ids := map[string]bool{}
	for log := range f.Logs() {
		l := f.of(log)
		require.Equal(t, 1, l.resets)
		require.Zero(t, l.from, "nothing was appended")
		ids[l.id] = true
	}
	require.Len(t, ids, f.Logs(), "an id is one log's")
}

func logsOrder(t *testing.T, b LogsBed) {
	const each = 20
	all := []*follower{b.follow(t, "one"), b.follow(t, "two"), b.follow(t, "three")}
	var work sync.WaitGroup
	for i, f := range all {
		work.Go(func() {
			for n := range each {
				for log := range f.Logs() {
					assert.NoError(t, f.report(t, log, f.of(log).id, fmt.Sprintf("%d/%d", i, n), 0))
				}
			}
		})
	}
	work.Wait()
	for _, f := range all {
		f.await(t, "all records are read", func(l followed) bool { return len(l.records) == each*len(all) })
		for log := range f.Logs() {
			require.Equal(t, all[0].of(log).records, f.of(log).records, "log %d is one order", log)
		}
	}
	for i := range all {
		own := slices.DeleteFunc(slices.Clone(all[0].of(0).records), func(r string) bool { return r[0] != byte('0'+i) })
		require.Len(t, own, each)
		for n, r := range own {
			require.Equal(t, fmt.Sprintf("%d/%d", i, n), r, "one after the other was appended")
		}
	}
}

func logsNewcomer(t *testing.T, b LogsBed) {
	one := b.follow(t, "one")
	for n := range 5 {
		one.put(t, 0, fmt.Sprint(n), 0)
	}
	two := b.follow(t, "two")
	one.put(t, 0, "5", 0)
	whole := []string{"0", "1", "2", "3", "4", "5"}
	zero := two.of(0).id
	two.await(t, "the last one is read", func(l followed) bool { return l.id != zero || l.next == 6 })
	l := two.of(0)
	require.Equal(t, whole[l.from:], l.records)
}

// logsStandstill keeps one process from calling Next for longer than T, like a suspended or busy process,
// while others write more than any buffer is likely to hold. The follower checks that no offset is passed
// over without a reset.
func logsStandstill(t *testing.T, b LogsBed) {
	const each = 400
	one, two := b.follow(t, "one"), b.follow(t, "two")
	two.turn <- struct{}{}
	for n := range each {
		for log := range one.Logs() {
			one.put(t, log, fmt.Sprint(n), 0)
		}
	}
	heard := 0
	for log := range one.Logs() {
		heard = max(heard, one.of(log).alives)
	}
	one.await(t, "some T have passed", func(l followed) bool { return l.alives >= heard+12 })
	<-two.turn
	for log := range one.Logs() {
		one.put(t, log, "last", 0)
	}
	ends := func(l followed) bool { return len(l.records) > 0 && l.records[len(l.records)-1] == "last" }
	one.await(t, "the last one is read", ends)
	two.await(t, "the last one is read by who stood still", ends)
	for log := range one.Logs() {
		l := two.of(log)
		require.Equal(t, one.of(log).records[l.from:], l.records, "log %d from offset %d on", log, l.from)
	}
}

func logsStranger(t *testing.T, b LogsBed) {
	f := b.follow(t, "one")
	zero := f.of(0).id
	require.Error(t, f.report(t, 0, zero+"x", "another", 0))
	f.put(t, 0, "its own", 0)
	f.await(t, "it is read", func(l followed) bool { return l.id != zero || len(l.records) == 1 })
	require.Equal(t, []string{"its own"}, f.of(0).records)
}

// logsDisagree opens the logs with a T that is not the others'. The member may get an error, but no entry.
func logsDisagree(t *testing.T, b LogsBed) {
	b.follow(t, "one")
	s := b.Settings
	s.Name, s.Logger, s.HeartbeatTimeout = "two", slog.New(slog.DiscardHandler), 2*b.Settings.HeartbeatTimeout
	set, err := b.Provider(t, "two").SmallLogs(t.Context(), s)
	if err != nil {
		return
	}
	defer func() { assert.NoError(t, set.Close()) }()
	for end := time.Now().Add(2 * b.Settings.HeartbeatTimeout); time.Now().Before(end); {
		e, ok, err := set.Next(t.Context(), time.Until(end))
		if err != nil {
			return
		}
		require.False(t, ok, "it reads log %d", e.Log)
	}
}

func logsRestarted(t *testing.T, b LogsBed) {
	f := b.follow(t, "one")
	for log := range f.Logs() {
		f.put(t, log, "before", 0)
	}
	f.await(t, "it is read", func(l followed) bool { return len(l.records) == 1 })
	former := f.of(0)
	b.Restart(t, 0)
	f.await(t, "log 0 begins again, and no other", func(l followed) bool { return l.id != former.id })
	l := f.of(0)
	require.Equal(t, 2, l.resets)
	require.Zero(t, l.next, "it is empty")
	require.Error(t, f.report(t, 0, former.id, "late", 0), "what was meant for the former one")
	f.put(t, 0, "after", 0)
	f.await(t, "it is read", func(l followed) bool { return len(l.records) == 1 })
	require.Equal(t, []string{"after"}, f.of(0).records)
	for log := 1; log < f.Logs(); log++ {
		require.Equal(t, 1, f.of(log).resets, "the others go on")
	}
}

func logsAlive(t *testing.T, b LogsBed) {
	began, lease := time.Now(), b.Settings.HeartbeatTimeout
	f := b.follow(t, "one")
	f.await(t, "each log is heard several times", func(l followed) bool { return l.alives >= 8 })
	t.Logf("heard eight times within %v, T is %v", time.Since(began), lease)
	for log := range f.Logs() {
		heard := f.of(log).heard
		// Delays of this process or a host lengthen some intervals, but not all of them, and they do not shorten
		// the first seven intervals together.
		require.GreaterOrEqual(t, heard[7].Sub(began), 7*lease/8, "log %d sends them more often than each T/8", log)
		least := lease
		for i := range 7 {
			least = min(least, heard[i+1].Sub(heard[i]))
		}
		require.Less(t, least, lease/2, "log %d counts as unreachable between any two of them", log)
	}
}

func logsGone(t *testing.T, b LogsBed) {
	f := b.follow(t, "one")
	zero := f.of(0).id
	b.Stop(t, 0)
	require.Error(t, f.report(t, 0, zero, "nobody takes it", 0))
	for log := 1; log < f.Logs(); log++ {
		f.put(t, log, "x", 0)
	}
	f.await(t, "the others are read", func(l followed) bool { return l.id == zero || len(l.records) == 1 })
}

func logsTop(t *testing.T, b LogsBed) {
	f := b.follow(t, "one")
	f.put(t, 0, "large", 7_000_000)
	f.put(t, 0, "small", 5)
	top := b.follow(t, "two").of(0).top
	require.Contains(t, []int64{0, 7_000_000}, top)
}

func logsNext(t *testing.T, b LogsBed) {
	set := b.open(t, "one")
	defer func() { assert.NoError(t, set.Close()) }()
	ctx, cancel := context.WithCancel(t.Context())
	for began, ok := time.Now(), true; ok; {
		var err error
		_, ok, err = set.Next(ctx, time.Millisecond)
		require.NoError(t, err)
		require.Less(t, time.Since(began), patience, "Next never times out, although nothing is appended")
	}
	cancel()
	for began := time.Now(); ; { // entries that have arrived may still be returned
		_, ok, err := set.Next(ctx, patience)
		require.NoError(t, err)
		require.Less(t, time.Since(began), patience)
		if !ok {
			return
		}
	}
}

func logsClose(t *testing.T, b LogsBed) {
	f := b.follow(t, "one")
	var mu sync.Mutex
	taken, reported := 0, 0
	for n := range 50 {
		if f.Append(n%f.Logs(), f.of(n%f.Logs()).id, []byte("x"), 0, func(error) {
			mu.Lock()
			defer mu.Unlock()
			reported++
		}) == nil {
			taken++
		}
	}
	f.stop()
	mu.Lock()
	require.Equal(t, taken, reported, "each was reported once, before Close returned")
	mu.Unlock()
	require.Error(t, f.Append(0, f.of(0).id, []byte("x"), 0, func(error) { t.Error("reported after an error") }))
}
