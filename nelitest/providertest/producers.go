package providertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/drive"
	"github.com/goneli/neli/kafka"
)

var producerPoints = []point{
	{"the caller may change the value after Append", "", valueCopied},
	{"reports come from another goroutine, once", "", reportsElsewhere},
	{"appends may be concurrent, and are reported once each", "", concurrentAppends},
	{"a record times out even if no broker answers", Freeze, timeUp},
	{"neither making a client nor Append waits for a broker", Freeze, waitsForNobody},
	{"Close reports everything", "", closeReports},
	{"Close ends concurrent appends", "", closeUnderLoad},
	{"Close is bounded even if no broker answers", Freeze, closeBounded},
	{"Purge reports everything", "", purgeReports},
	{"Purge reports what is in flight", Freeze, purgeInFlight},
	{"a producer reports for how long it was throttled", Throttle, throttled},
	{"closed clients refuse", "", closedRefuse},
}

func valueCopied(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p := b.producer(t)
	v := []byte("abc")
	done := make(chan error, 1)
	require.NoError(t, p.Append(topic, 0, v, func(err error) { done <- err }))
	v[0] = 'x'
	require.NoError(t, drive.Reported(t, done))
	for range 2 { // the receiver may change a record, too
		r := b.reader(t)
		require.NoError(t, r.Assign(topic, []int64{0}))
		rec := drive.Read(t, r, 1)[0]
		require.Equal(t, "abc", string(rec.Value))
		rec.Value[1] = 'y'
	}
}

func reportsElsewhere(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p := b.producer(t)
	var mu sync.Mutex // held during Append: a report from within would deadlock
	reported := make([]int, 20)
	for i := range reported {
		mu.Lock()
		require.NoError(t, p.Append(topic, 0, nil, func(error) {
			mu.Lock()
			defer mu.Unlock()
			reported[i]++
		}))
		mu.Unlock()
	}
	drive.AppendAll(t, p, topic, 0, "last")
	require.NoError(t, p.Close())
	for i := range reported {
		require.Equal(t, 1, reported[i])
	}
}

func waitsForNobody(t *testing.T, b Bed) {
	b.silent = true
	topic := b.topic(t, 1)
	defer b.Freeze(t)()
	var p kafka.Producer
	for what, do := range map[string]func(){
		"a producer with its admin": func() { p = b.producer(t); b.admin(t, p) },
		"a reader":                  func() { b.reader(t) },
		"a member":                  func() { b.member(t, newName()) },
	} {
		began := time.Now()
		do()
		require.Less(t, time.Since(began), time.Second, "making %s waits", what)
	}
	began := time.Now()
	require.NoError(t, p.Append(topic, 0, nil, func(error) {}))
	require.Less(t, time.Since(began), time.Second, "Append waits")
}

func closeReports(t *testing.T, b Bed) {
	none := newName()
	p := b.producer(t)
	var reports atomic.Int32 // reports may be concurrent
	for range 10 {
		require.NoError(t, p.Append(none, 0, nil, func(err error) {
			wait(time.Millisecond)
			if err != nil {
				reports.Add(1)
			}
		}))
	}
	require.NoError(t, p.Close())
	require.EqualValues(t, 10, reports.Load(), "no report is pending")
	require.NoError(t, p.Close())
}

func purgeReports(t *testing.T, b Bed) {
	topic, none := b.topic(t, 1), newName()
	p := b.producer(t)
	reports := make(chan error, 20)
	failed := make(chan error, 10)
	for i := range 10 {
		to := reports
		if i%2 == 1 {
			to = failed
		}
		require.NoError(t, p.Append([]string{topic, none}[i%2], 0, nil, func(err error) { to <- err }))
	}
	p.Purge()
	for range 5 {
		_ = drive.Reported(t, reports) // some appends may have succeeded
		require.Error(t, drive.Reported(t, failed))
	}
	goesOn(t, p, topic)
	require.NoError(t, p.Close())
	require.Empty(t, reports)
	require.Empty(t, failed)
}

// goesOn requires that records are appended again after Purge, which may have dropped some of them.
func goesOn(t *testing.T, p kafka.Producer, topic string) {
	t.Helper()
	reports := make(chan error, 1)
	eventually(t, patience, "the producer goes on", func() bool {
		require.NoError(t, p.Append(topic, 0, []byte("goes on"), func(err error) { reports <- err }))
		return drive.Reported(t, reports) == nil
	})
}

func closedRefuse(t *testing.T, b Bed) {
	p, r, g := b.producer(t), b.reader(t), b.member(t, newName())
	a := b.admin(t, p)
	a.Close()
	require.NoError(t, errors.Join(p.Close(), r.Close(), g.Close()))
	require.Error(t, p.Append("none", 0, nil, func(error) { t.Error("reported") }))
	_, _, err := r.Poll(time.Minute)
	require.Error(t, err)
	_, err = g.Poll(time.Minute)
	require.Error(t, err)
	_, err = a.Brokers(context.Background(), false)
	require.Error(t, err)
	require.Error(t, r.Assign("none", nil))
	require.Error(t, g.Join("none", false))
	require.Zero(t, p.Throttled()+r.Throttled()+g.Throttled())
}

func concurrentAppends(t *testing.T, b Bed) {
	const senders, each = 8, 50
	topic := b.topic(t, 3)
	p, r := b.producer(t), b.reader(t)
	reports := make(chan error, 2*senders*each)
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for i := range each {
				if err := p.Append(topic, i%3, fmt.Append(nil, s, "/", i), func(err error) { reports <- err }); err != nil {
					reports <- err
				}
			}
		})
	}
	sending.Wait()
	for range senders * each {
		require.NoError(t, drive.Reported(t, reports))
	}
	require.NoError(t, r.Assign(topic, []int64{0, 0, 0}))
	for there := map[string]bool{}; len(there) < senders*each; {
		there[string(drive.Read(t, r, 1)[0].Value)] = true // some may be there twice
	}
	require.NoError(t, p.Close())
	require.Empty(t, reports, "reported again")
}

func timeUp(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p := b.producer(t, "message.timeout.ms", "2000")
	done := make(chan error, 2)
	// A client that has no connection yet, or has lost it, may take longer than a record's timeout to connect.
	works := func(what string) {
		for began := time.Now(); ; {
			require.NoError(t, p.Append(topic, 0, []byte(what), func(err error) { done <- err }))
			if err := drive.Reported(t, done); err == nil {
				break
			}
			require.Less(t, time.Since(began), 15*time.Second, what)
		}
	}
	works("it works")
	thaw := b.Freeze(t)
	defer thaw()
	began := time.Now()
	require.NoError(t, p.Append(topic, 0, nil, func(err error) { done <- err }))
	require.Error(t, drive.Reported(t, done))
	require.Less(t, time.Since(began), 15*time.Second)
	thaw()
	works("it works again")
	require.NoError(t, p.Close())
	require.Empty(t, done, "reported again")
}

// appending appends until Append fails, and returns the number of successful calls.
func appending(p kafka.Producer, topic string, report func(error)) int {
	for n := 0; ; n++ {
		if p.Append(topic, 0, []byte("load"), report) != nil {
			return n
		}
		if n%20 == 19 {
			wait(time.Millisecond)
		}
	}
}

func closeUnderLoad(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p := b.producer(t)
	drive.AppendAll(t, p, topic, 0, "0")
	var mu sync.Mutex
	var accepted, reported, late int
	closed := false
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			n := appending(p, topic, func(error) {
				mu.Lock()
				defer mu.Unlock()
				reported++
				if closed {
					late++
				}
			})
			mu.Lock()
			defer mu.Unlock()
			accepted += n
		})
	}
	wait(300 * time.Millisecond)
	require.NoError(t, p.Close())
	mu.Lock()
	closed = true
	mu.Unlock()
	load.Wait()
	mu.Lock()
	defer mu.Unlock()
	require.Positive(t, accepted)
	require.Equal(t, accepted, reported)
	require.Zero(t, late, "reports after Close")
}

func closeBounded(t *testing.T, b Bed) {
	b.silent = true
	topic := b.topic(t, 1)
	p, r, g := b.producer(t), b.reader(t), b.member(t, newName())
	a := b.admin(t, p)
	drive.AppendAll(t, p, topic, 0, "0")
	require.NoError(t, r.Assign(topic, []int64{0}))
	drive.Read(t, r, 1)
	m := drive.Track(t, g, topic, false)
	eventually(t, patience, "it has the partition", func() bool { return len(m.Assigned()) == 1 })
	m.Stop()
	defer b.Freeze(t)()
	done := make(chan error, 1)
	require.NoError(t, p.Append(topic, 0, nil, func(err error) { done <- err }))
	for what, shut := range map[string]func(){
		"reader":             func() { _ = r.Close() },
		"group":              func() { _ = g.Close() },
		"admin and producer": func() { a.Close(); _ = p.Close() },
	} {
		began := time.Now()
		shut()
		require.Less(t, time.Since(began), 12*time.Second, what)
	}
	require.Error(t, drive.Reported(t, done))
}

func purgeInFlight(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p := b.producer(t)
	drive.AppendAll(t, p, topic, 0, "0")
	thaw := b.Freeze(t)
	defer thaw()
	done := make(chan error, 20)
	for range 5 {
		require.NoError(t, p.Append(topic, 0, []byte("purged"), func(err error) { done <- err }))
		wait(200 * time.Millisecond) // until it is in flight
	}
	began := time.Now()
	p.Purge()
	require.Less(t, time.Since(began), time.Second, "Purge waits")
	for range 5 {
		require.Error(t, drive.Reported(t, done))
	}
	require.Less(t, time.Since(began), 5*time.Second)
	thaw()
	goesOn(t, p, topic)
	require.NoError(t, p.Close())
	require.Empty(t, done, "reported again")
}

func throttled(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p := b.Throttle(t).producer(t, "statistics.interval.ms", "500")
	require.Zero(t, p.Throttled())
	value := string(make([]byte, 100_000))
	eventually(t, patience, "it says so", func() bool {
		drive.AppendAll(t, p, topic, 0, value)
		return p.Throttled() > 0
	})
	before := p.Throttled()
	require.NoError(t, p.Close())
	require.GreaterOrEqual(t, p.Throttled(), before)
	require.Zero(t, b.producer(t).Throttled(), "others are not")
}
