package smalllog

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
)

// ID distinguishes one incarnation of a log from all others.
type ID [16]byte

// NewID draws a random id. It is safe for concurrent use.
func NewID() ID {
	var id ID
	rand.Read(id[:]) // never fails: without randomness it ends the program
	return id
}

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Limits bound what a log keeps. When one is exceeded, the oldest records are dropped.
type Limits struct {
	Records int // at least 1
	Bytes   int // total length of values; the newest record is always kept
}

// DefaultLimits keep a few thousand records. That is several minutes of beats, and more than
// twice what a newcomer needs to find a snapshot.
var DefaultLimits = Limits{Records: 4096, Bytes: 16 << 20}

// MaxValue is the largest length of a value, in bytes.
const MaxValue = 64 << 10

var (
	// ErrIncarnation says that the record was made for another incarnation. It was not appended.
	ErrIncarnation = errors.New("another incarnation of the log")
	// ErrTooLarge says that the value is longer than MaxValue. The record was not appended.
	ErrTooLarge = errors.New("record too large")
	// ErrSlow says that the reader's next record is not kept any more.
	ErrSlow = errors.New("reader fell behind the oldest record kept")
)

// Log is one incarnation of a log. It is not safe for concurrent use. Record o is kept for first
// ≤ o < end, at ring[o mod len(ring)].
type Log struct {
	id    ID
	ring  [][]byte
	first int64
	end   int64
	size  int // total length of the values kept, in bytes
	limit int
	top   int64
}

// New returns an empty log. top is the largest known ballot of former incarnations, 0 if none is known.
func New(id ID, limits Limits, top int64) *Log {
	return &Log{id: id, ring: make([][]byte, max(1, limits.Records)), limit: limits.Bytes, top: top}
}

// ID returns the incarnation's id.
func (l *Log) ID() ID { return l.id }

// End returns the offset that the next record will have.
func (l *Log) End() int64 { return l.end }

// First returns the offset of the oldest record kept, End if there is none.
func (l *Log) First() int64 { return l.first }

// Top returns the largest of the ballots of all records appended, the one given to New (of former
// incarnations), and those given to Raise.
func (l *Log) Top() int64 { return l.top }

// Raise makes the largest ballot at least top.
func (l *Log) Raise(top int64) { l.top = max(l.top, top) }

// Append gives a record the next offset, and returns that. id is the incarnation that the record
// was made for. The log keeps value: the caller must not change it any more. ballot is the
// record's, 0 if it has none. The error wraps ErrIncarnation or ErrTooLarge, and nothing is
// appended then.
func (l *Log) Append(id ID, value []byte, ballot int64) (int64, error) {
	if id != l.id {
		return 0, fmt.Errorf("%w: the record is for %v, this is %v", ErrIncarnation, id, l.id)
	}
	if len(value) > MaxValue {
		return 0, fmt.Errorf("%w: %d bytes, %d at most", ErrTooLarge, len(value), MaxValue)
	}
	o := l.end
	if o-l.first == int64(len(l.ring)) {
		l.drop()
	}
	l.ring[o%int64(len(l.ring))] = value
	l.end++
	l.size += len(value)
	for l.size > l.limit && l.first < o {
		l.drop()
	}
	l.top = max(l.top, ballot)
	return o, nil
}

// drop removes the oldest record.
func (l *Log) drop() {
	i := l.first % int64(len(l.ring))
	l.size -= len(l.ring[i])
	l.ring[i] = nil
	l.first++
}

// Subscribe returns a reader of all records from max(First, min(from, End)) on. If the caller has
// read up to from, it has missed records unless Reader.Next is from.
func (l *Log) Subscribe(from int64) *Reader {
	return &Reader{log: l, next: max(l.first, min(from, l.end))}
}

// Reader reads a log in order. Like its Log, it is not safe for concurrent use.
type Reader struct {
	log  *Log
	next int64
}

// Next returns the offset of the record that Read will return.
func (r *Reader) Next() int64 { return r.next }

// Slow reports whether the next record is not kept any more. This never changes back.
func (r *Reader) Slow() bool { return r.next < r.log.first }

// Read returns the next record and its offset. ok is false if there is none yet. The value must
// not be changed. The error wraps ErrSlow, and is final.
func (r *Reader) Read() (value []byte, offset int64, ok bool, err error) {
	switch {
	case r.Slow():
		return nil, 0, false, fmt.Errorf("%w: at %d, and records before %d are gone", ErrSlow, r.next, r.log.first)
	case r.next == r.log.end:
		return nil, 0, false, nil
	}
	offset = r.next
	r.next++
	return r.log.ring[offset%int64(len(r.log.ring))], offset, true, nil
}
