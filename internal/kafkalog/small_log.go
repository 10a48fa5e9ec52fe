package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goneli/neli/kafka"
)

// smallPartition is one small log in Kafka, with its own clients.
type smallPartition struct {
	index     int
	topic     *Topic
	T         time.Duration // HeartbeatTimeout
	producer  kafka.Producer
	admin     kafka.Admin
	newReader func() (kafka.LogReader, error)
	emit      func(context.Context, kafka.LogEntry)
	refused   func(error) // ends all logs
	log       *slog.Logger

	// The following fields are used by follow's goroutine.
	reader     kafka.LogReader // nil: another one is needed
	readers    spaced
	position   int64 // the next offset to read
	unreadable unreadable

	still    *stillness     // of one partition
	replaced *atomic.Uint64 // counts replaced readers; nil: not counted
	closing  sync.WaitGroup // replaced readers

	at        incarnation
	reading   *AccessGuard // shared by all logs of the topic, as ACLs are
	writing   *AccessGuard
	unread    Trouble
	unwritten Trouble
}

// incarnation tracks which epoch of the log is read.
type incarnation struct {
	mu     sync.Mutex
	epoch  int       // being read; −1: none yet
	newest int       // the newest known epoch
	anew   bool      // reading must begin again, even in the same epoch
	heard  time.Time // the log's last answer or record
	sealed bool      // no more appends
}

// outdated reports whether reading must begin, or begin again.
func (n *incarnation) outdated() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.epoch < 0 || n.anew || n.newest > n.epoch
}

// begin starts to read an epoch. It returns false if a newer epoch is known.
func (n *incarnation) begin(epoch int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if epoch < n.newest {
		return false
	}
	n.epoch, n.newest, n.anew, n.heard = epoch, epoch, false, time.Now()
	return true
}

// doubt makes reading begin again.
func (n *incarnation) doubt() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.anew = true
}

// hear notes an epoch that the log reports, and returns whether reading of it goes on. A newer epoch
// makes reading begin again.
func (n *incarnation) hear(epoch int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.newest = max(n.newest, epoch)
	if epoch != n.epoch || n.anew || n.newest > n.epoch {
		return false
	}
	n.heard = time.Now()
	return true
}

// silent reports whether nothing came for d from a log that is read.
func (n *incarnation) silent(d time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.epoch >= 0 && time.Since(n.heard) >= d
}

// current returns the epoch being read, and whether appends are allowed.
func (n *incarnation) current() (epoch int, open bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.epoch, n.epoch >= 0 && !n.sealed
}

// id identifies an incarnation of this log among those of all logs.
func (l *smallPartition) id(epoch int) string {
	return fmt.Sprintf("%s.%d.%d", l.topic.id, l.index, epoch)
}

// smallSlice is the longest single wait of a reader. It limits how late follow reacts to a newer epoch.
const smallSlice = 100 * time.Millisecond

// follow reads the log until ctx is done. An error is final.
func (l *smallPartition) follow(ctx context.Context) error {
	slice := min(smallSlice, l.T/8)
	for ctx.Err() == nil {
		if l.at.outdated() {
			if err := l.begin(ctx); err != nil {
				return err
			}
			continue
		}
		began := time.Now()
		r, ok, err := l.reader.Poll(slice)
		switch {
		case err != nil:
			if saysWhy(err) {
				l.still.restart(time.Now(), nil)
			}
			if err := l.recover(ctx, err); err != nil {
				return err
			}
		case ok:
			l.take(ctx, r)
		default:
			l.look(min(slice, time.Since(began)))
		}
	}
	return nil
}

// look replaces a reader that stands still, as kafkaLog.look does.
func (l *smallPartition) look(waited time.Duration) {
	still := l.still.waited(waited)
	if len(still) == 0 {
		return
	}
	l.log.Warn("the log reader stands still: the log has records that it does not return; replacing its client",
		"topic", l.topic.name, "partition", l.index)
	if l.replaced != nil {
		l.replaced.Add(1)
	}
	l.closing.Wait() // for the reader replaced before
	old := l.reader
	l.reader = nil
	l.closing.Go(func() { _ = old.Close() }) // Close may wait for a broker
	l.still.restart(time.Now(), still)
	l.at.doubt()
}

// begin asks for the current incarnation and begins to read it a little before its end. It waits
// until the partition has a leader.
func (l *smallPartition) begin(ctx context.Context) error {
	var info kafka.LogInfo
	err := l.topic.retry(ctx, "read the ends of the leader topic", func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, l.patience())
		defer cancel()
		if info, err = l.admin.Log(ctx, l.topic.name, l.index); err != nil {
			return fmt.Errorf("partition %d: %w", l.index, err)
		}
		return nil
	})
	if err != nil || ctx.Err() != nil {
		return err
	}
	if info.Epoch < 0 {
		return fmt.Errorf("%w: partition %d of topic %s", ErrNoLeaderEpoch, l.index, l.topic.name)
	}
	l.position = max(info.Start, info.End-history, min(l.unreadable.from(0), info.End))
	l.still.begin(0, l.position, time.Now())
	if err := l.assign(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if !l.at.begin(info.Epoch) {
		pause(ctx, 10*time.Millisecond) // the broker that answered lags behind
		return nil
	}
	l.emit(ctx, kafka.LogEntry{Log: l.index, Kind: kafka.LogReset, ID: l.id(info.Epoch), Offset: l.position, First: info.Start, End: info.End})
	return nil
}

// patience is how long to wait for an answer before asking again.
func (l *smallPartition) patience() time.Duration { return max(2*time.Second, l.T) }

// assign makes the reader continue at position, with a new client if there is none.
func (l *smallPartition) assign(ctx context.Context) error {
	offsets := slices.Repeat([]int64{kafka.NotRead}, l.index+1)
	offsets[l.index] = l.position
	return l.topic.retry(ctx, "read the leader topic", func(context.Context) error {
		if l.reader == nil {
			if err := l.readers.wait(ctx); err != nil {
				return err
			}
			r, err := l.newReader()
			if err != nil {
				return err
			}
			l.reader = r
		}
		err := l.reader.Assign(l.topic.name, offsets)
		if errors.Is(err, kafka.ErrClientFatal) {
			l.dismiss()
		}
		return err
	})
}

// dismiss closes the reader, so that assign makes another one.
func (l *smallPartition) dismiss() {
	_ = l.reader.Close()
	l.reader = nil
}

// ofNobody replaces a record that does not belong to the incarnation: such a record takes up an
// offset in the log, but has no effect.
var ofNobody = []byte(`{"neli":1}`)

// take passes on a record of the incarnation being read, and ofNobody in place of one of an
// earlier epoch.
func (l *smallPartition) take(ctx context.Context, r kafka.Record) {
	epoch, _ := l.at.current()
	switch {
	case r.Partition != l.index:
		return
	case r.Offset < l.position:
		l.at.doubt() // the log went back
		return
	case r.Epoch > epoch:
		l.at.hear(r.Epoch)
		return
	}
	l.reading.OK()
	l.unread.Over(l.log, "reading the leader topic again", "topic", l.topic.name, "partition", l.index)
	l.still.got(0, r.Offset, time.Now())
	l.position = r.Offset + 1
	l.unreadable.read(0)
	e := kafka.LogEntry{Log: l.index, Kind: kafka.LogRecord, ID: l.id(epoch), Offset: r.Offset, Value: r.Value}
	if r.Epoch < epoch {
		e.Value = ofNobody
	}
	l.at.hear(epoch)
	l.emit(ctx, e)
}

// recover handles a read error. An error that it returns is final.
func (l *smallPartition) recover(ctx context.Context, err error) error {
	var at *kafka.UnreadableError
	if errors.As(err, &at) {
		next := l.unreadable.after(0, l.position, at, math.MaxInt64) // begin asks where the log ends
		l.unreadable.say(l.log, l.topic.name, l.index, next, err)
		l.at.doubt()
		return nil
	}
	right := "READ topic " + l.topic.name
	if fatal := l.reading.Check(right, err); fatal != nil {
		return fatal
	}
	if !l.topic.spreads(err) && l.unread.Due() {
		l.log.Warn("cannot read the leader topic, retrying", "topic", l.topic.name, "partition", l.index, "error", Naming(right, err))
	}
	wait := 10 * time.Millisecond
	switch {
	case errors.Is(err, kafka.ErrClientFatal):
		l.dismiss()
		l.at.doubt()
	case errors.Is(err, kafka.ErrTruncated), errors.Is(err, kafka.ErrOutOfRange):
		// The broker has lost records, retention has deleted records before they were read, or it is another topic.
		l.at.doubt()
		if err := l.topic.verify(ctx); err != nil {
			return err
		}
	case errors.Is(err, kafka.ErrUnknownTopic):
		l.topic.Doubt()
	case errors.Is(err, kafka.ErrAuthorization):
		// The client reports this once. A second request shows whether it lasts.
		wait = time.Second
		l.at.doubt()
	}
	pause(ctx, wait)
	return nil
}

// ask asks the partition's leader for its epoch whenever nothing came from the log for T/4, until ctx
// is done. The answer shows that a log without traffic is there, or that it has another incarnation,
// before this process claims anything in it.
func (l *smallPartition) ask(ctx context.Context) {
	tick := time.NewTicker(l.T / 8)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !l.at.silent(l.T / 4) {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, max(l.T/2, 200*time.Millisecond))
		info, err := l.admin.Log(asking, l.topic.name, l.index)
		cancel()
		if err == nil && l.at.hear(info.Epoch) {
			l.still.end(0, info.End)
			l.emit(ctx, kafka.LogEntry{Log: l.index, Kind: kafka.LogAlive, ID: l.id(info.Epoch), End: info.End})
		}
	}
}

var errIncarnation = errors.New("the log has another id")

// append hands a record to the client. If the partition has another leader when the record
// arrives, the record's id does not match the epoch, and all readers ignore the record.
func (l *smallPartition) append(id string, value []byte, report func(error)) error {
	epoch, open := l.at.current()
	switch {
	case !open:
		return errSealed
	case id != l.id(epoch):
		return errIncarnation
	}
	defer func() {
		if _, open := l.at.current(); !open {
			l.producer.Purge() // sealed meanwhile
		}
	}()
	handed := time.Now()
	err := l.producer.Append(l.topic.name, l.index, value, func(err error) {
		if err == nil {
			l.writing.OK()
			l.unwritten.Over(l.log, "writing to the leader topic again", "topic", l.topic.name, "partition", l.index)
			l.still.acknowledged(0, handed)
		} else {
			err = l.lost(err)
		}
		report(err)
	})
	if err != nil {
		err = l.lost(err)
	}
	return err
}

// lost handles a record that was not acknowledged, and returns the error for the elector.
func (l *smallPartition) lost(err error) error {
	right := "WRITE topic " + l.topic.name
	if fatal := l.writing.Check(right, err); fatal != nil {
		l.refused(fatal)
	}
	if _, open := l.at.current(); open && l.unwritten.Due() {
		l.log.Warn("cannot write to the leader topic, retrying", "topic", l.topic.name, "partition", l.index, "error", Naming(right, err))
	}
	return denied(right, err)
}

// seal ends writing.
func (l *smallPartition) seal() {
	l.at.mu.Lock()
	l.at.sealed = true
	l.at.mu.Unlock()
	l.producer.Purge()
}

func (l *smallPartition) close() error {
	l.seal()
	var err error
	if l.reader != nil {
		err = l.reader.Close()
	}
	l.closing.Wait()
	l.admin.Close()
	return errors.Join(err, l.producer.Close())
}
