package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goneli/neli/kafka"
)

// smallPartition is one small log in Kafka. It has more than a dozen fields because it is
// what one partition needs of everything: its own clients, its place in the log, and what
// access it was granted.
type smallPartition struct {
	index     int
	topic     *Topic
	lease     time.Duration // T
	producer  kafka.Producer
	admin     kafka.Admin
	newReader func() (kafka.LogReader, error)
	emit      func(context.Context, kafka.LogEntry)
	refused   func(error) // ends it all
	log       *slog.Logger

	// Of follow's goroutine.
	reader   kafka.LogReader // nil: another one is needed
	position int64           // to be read next

	still    *stillness     // of one partition
	replaced *atomic.Uint64 // readers that stood still; nil: not counted
	closing  sync.WaitGroup // readers that were replaced

	at        incarnation
	reading   *AccessGuard // of all logs of the topic: rights are the topic's
	writing   *AccessGuard
	unread    Trouble
	unwritten Trouble
}

// incarnation is what is known of whom a log is read from.
type incarnation struct {
	mu     sync.Mutex
	epoch  int       // that is read; −1: none yet
	newest int       // that was heard of
	anew   bool      // reading has to begin anew, though the epoch may be the same
	heard  time.Time // when the log last said anything
	sealed bool      // nothing is appended any more
}

// outdated reports whether reading has to begin, or to begin anew.
func (n *incarnation) outdated() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.epoch < 0 || n.anew || n.newest > n.epoch
}

// begin takes note that an epoch is read from now on, unless it is known to be over.
func (n *incarnation) begin(epoch int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if epoch < n.newest {
		return false
	}
	n.epoch, n.newest, n.anew, n.heard = epoch, epoch, false, time.Now()
	return true
}

// doubt makes reading begin anew.
func (n *incarnation) doubt() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.anew = true
}

// hear takes note of an epoch that was heard, and reports whether it is the one that is
// read. A larger one makes reading begin anew.
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

// silent reports whether the log that is read has said nothing for d.
func (n *incarnation) silent(d time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.epoch >= 0 && time.Since(n.heard) >= d
}

// current is the epoch that is read, and whether anything may be appended.
func (n *incarnation) current() (epoch int, open bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.epoch, n.epoch >= 0 && !n.sealed
}

// id tells an incarnation of this log from all others, and from those of all other logs.
func (l *smallPartition) id(epoch int) string {
	return fmt.Sprintf("%s.%d.%d", l.topic.id, l.index, epoch)
}

// smallSlice bounds how long a reader waits at a time, and so for how long it does not
// notice that another epoch was heard of.
const smallSlice = 100 * time.Millisecond

// follow reads the log until ctx is done. An error is final.
func (l *smallPartition) follow(ctx context.Context) error {
	slice := min(smallSlice, l.lease/8)
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

// look replaces the reader if it stands still, as kafkaLog.look does.
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
	l.closing.Wait() // of the one before
	old := l.reader
	l.reader = nil
	l.closing.Go(func() { _ = old.Close() }) // it may wait for a broker
	l.still.restart(time.Now(), still)
	l.at.doubt()
}

// begin finds out which incarnation there is, and begins to read it a little before its
// end. It waits for the partition to have a leader.
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
	l.position = max(info.Start, info.End-history)
	l.still.begin(0, l.position, time.Now())
	if err := l.assign(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if !l.at.begin(info.Epoch) {
		pause(ctx, 10*time.Millisecond) // whom was asked is behind
		return nil
	}
	l.emit(ctx, kafka.LogEntry{Log: l.index, Kind: kafka.LogReset, ID: l.id(info.Epoch), Offset: l.position, First: info.Start, End: info.End})
	return nil
}

// patience is for how long an answer is waited for before it is asked again.
func (l *smallPartition) patience() time.Duration { return max(2*time.Second, l.lease) }

// assign makes the reader read on at position, with a new client if it must.
func (l *smallPartition) assign(ctx context.Context) error {
	offsets := slices.Repeat([]int64{kafka.NotRead}, l.index+1)
	offsets[l.index] = l.position
	return l.topic.retry(ctx, "read the leader topic", func(context.Context) error {
		if l.reader == nil {
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

// dismiss has another reader made.
func (l *smallPartition) dismiss() {
	_ = l.reader.Close()
	l.reader = nil
}

// ofNobody stands for a record that is none of the incarnation's, whatever it says: it has
// a place in the log, and that is all.
var ofNobody = []byte(`{"neli":1}`)

// take hands on a record of the incarnation that is read. One of an earlier epoch is
// another incarnation's, left from before this one began.
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
	e := kafka.LogEntry{Log: l.index, Kind: kafka.LogRecord, ID: l.id(epoch), Offset: r.Offset, Value: r.Value}
	if r.Epoch < epoch {
		e.Value = ofNobody
	}
	l.at.hear(epoch)
	l.emit(ctx, e)
}

// recover deals with a read error. The error it returns is final.
func (l *smallPartition) recover(ctx context.Context, err error) error {
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
		// The broker has lost records, or retention has deleted what was not read yet; or
		// it is another topic.
		l.at.doubt()
		if err := l.topic.verify(ctx); err != nil {
			return err
		}
	case errors.Is(err, kafka.ErrUnknownTopic):
		l.topic.Doubt()
	case errors.Is(err, kafka.ErrAuthorization):
		// The client says so once. Asked again, it says whether that lasts.
		wait = time.Second
		l.at.doubt()
	}
	pause(ctx, wait)
	return nil
}

// ask asks the partition's leader for its epoch whenever nothing was read for a while,
// until ctx is done: that is how a log that nobody writes to is known to be there, and how
// another incarnation is found out about before anything is claimed in it.
func (l *smallPartition) ask(ctx context.Context) {
	tick := time.NewTicker(l.lease / 8)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !l.at.silent(l.lease / 4) {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, max(l.lease/2, 200*time.Millisecond))
		info, err := l.admin.Log(asking, l.topic.name, l.index)
		cancel()
		if err == nil && l.at.hear(info.Epoch) {
			l.still.end(0, info.End)
			l.emit(ctx, kafka.LogEntry{Log: l.index, Kind: kafka.LogAlive, ID: l.id(info.Epoch), End: info.End})
		}
	}
}

var errIncarnation = errors.New("the log has another id")

// append hands a record over. If the partition's leader is another one by the time that it
// gets there, its id does not fit the epoch, and all readers pass it over.
func (l *smallPartition) append(id string, value []byte, report func(error)) error {
	epoch, open := l.at.current()
	switch {
	case !open:
		return errSealed
	case id != l.id(epoch):
		return errIncarnation
	}
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

// lost deals with a record that was not confirmed, and returns what the elector is told.
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
