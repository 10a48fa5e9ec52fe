// Package history tells from the records of a group's log who led which role, and checks what these
// records can prove. It reads them after the fact, without a process: clocks, waits at a start, and what a
// process believed without writing it are not in the log. All input is untrusted.
package history

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goneli/neli/internal/lease"
)

// Log is the part of a leader topic that is there to be read.
type Log struct {
	Group   string  `json:"group"`
	Topic   string  `json:"topic"`
	TopicID string  `json:"topic_id"`
	Starts  []int64 `json:"starts"` // by partition: the first offset that retention has left
	Ends    []int64 `json:"ends"`   // by partition: the offset behind the last record
}

// Entry is a record as it was read.
type Entry struct {
	Partition int
	Offset    int64
	Time      time.Time // the record's timestamp; zero: not known
	Value     []byte
}

// Ref names a record in a report. Only partition and offset are certain to be set.
type Ref struct {
	Partition int        `json:"partition"`
	Offset    int64      `json:"offset"`
	Kind      lease.Kind `json:"kind,omitempty"`
	Member    string     `json:"member,omitempty"`
	Name      string     `json:"name,omitempty"`
	Session   uint64     `json:"session,omitempty"`
	Read      int64      `json:"read"`
	Time      time.Time  `json:"time,omitzero"`

	other bool // a sentinel wrote it
}

// Why a term ended.
const (
	Leads       = "leads"       // it had not ended at the end of the records
	Released    = "released"    // its holder gave it up, in favour of nobody
	HandedOver  = "handed over" // its holder gave it up in favour of To
	Moved       = "moved"       // as HandedOver, for balance or preference
	Transferred = "transferred" // as HandedOver, because a person asked for it
	Lapsed      = "lapsed"      // its holder gave it up after its lease was over
	Died        = "died"        // a sentinel released it
	Outlived    = "outlived"    // its holder was silent, and another session claimed the role
	Lost        = "lost"        // the log went back
)

// Term is one session's holding of one role. The names in JSON do not change.
type Term struct {
	Role      int       `json:"role"`
	Partition int       `json:"partition"`
	Token     int64     `json:"token"`  // the offset of its Claim, without Config.TokenBase
	Member    string    `json:"member"` // the process's id
	Name      string    `json:"name"`
	Session   uint64    `json:"session"`
	LeaseMS   int64     `json:"lease_ms"`       // T
	From      time.Time `json:"from,omitzero"`  // of the Claim; zero: not known
	Until     time.Time `json:"until,omitzero"` // of the Release, or of the lease's end if Lapsed or Outlived; zero: it leads, or not known
	Evidence  int64     `json:"evidence"`       // the offset of the newest record that extended it
	EndedAt   int64     `json:"ended_at,omitempty"`
	End       string    `json:"end"`
	To        string    `json:"to,omitempty"` // the successor's id

	session lease.Session
	local   int32 // the role's number in its log
	claim   Ref
}

// Result is what the records tell.
type Result struct {
	Terms    []Term   `json:"-"`           // by role, then by token
	From     []int64  `json:"-"`           // by partition: all terms whose Claims are at this offset or later are there
	Records  int      `json:"records"`     // of this group and version
	Waits    int      `json:"waits"`       // waits before Claims, one for each silent session
	Shown    int      `json:"waits_shown"` // those that the claimant's own timestamps can check
	Faults   []Fault  `json:"faults"`      // at most maxFaults
	More     int      `json:"more_faults"` // beyond these
	Unproven []string `json:"unproven"`    // what the records cannot prove
}

// History folds the records of one group.
type History struct {
	Log
	codec  lease.Codec
	parts  []*part
	terms  []Term
	names  map[string]string // by a process's id
	result Result
	newer  int // how many records are of newer versions
	newest time.Time
	most   int // how many terms there may be
}

const (
	maxPartitions = 100_000
	// maxTerms bounds the memory to about a gigabyte: a Claim of a hundred bytes may begin ten thousand terms.
	maxTerms = 2_000_000
)

// New starts with no record read.
func New(log Log) (*History, error) {
	switch n := len(log.Starts); {
	case log.Group == "":
		return nil, errors.New("group: is empty, must be the group's name")
	case n == 0 || n > maxPartitions || len(log.Ends) != n:
		return nil, fmt.Errorf("starts, ends: have %d and %d offsets, must be one for each of 1 to %d partitions", n, len(log.Ends), maxPartitions)
	}
	h := &History{Log: log, codec: lease.Codec{Group: log.Group, Log: log.TopicID}, names: map[string]string{}, most: maxTerms}
	for i, start := range log.Starts {
		if start < 0 || log.Ends[i] < start {
			return nil, fmt.Errorf("starts[%d], ends[%d]: are %d and %d, must be offsets in this order", i, i, start, log.Ends[i])
		}
		p := &part{h: h, index: i, next: start}
		h.parts = append(h.parts, p)
		p.restart(start)
	}
	return h, nil
}

// Of tells what the records of a group say. Each of the partitions begins with its first record.
func Of(group, topicID string, partitions int, entries []Entry) (Result, error) {
	log := Log{Group: group, TopicID: topicID, Starts: make([]int64, partitions), Ends: make([]int64, partitions)}
	for _, e := range entries {
		if e.Partition >= 0 && e.Partition < partitions {
			if log.Ends[e.Partition] == 0 {
				log.Starts[e.Partition] = e.Offset
			}
			log.Ends[e.Partition] = max(log.Ends[e.Partition], e.Offset+1)
		}
	}
	h, err := New(log)
	for _, e := range entries {
		if err == nil {
			err = h.Add(e)
		}
	}
	if err != nil {
		return Result{}, err
	}
	return h.Result(), nil
}

// Add reads the next record of a partition. Records of other groups have no effect.
func (h *History) Add(e Entry) error {
	if e.Partition < 0 || e.Partition >= len(h.parts) {
		return fmt.Errorf("partition: is %d, must be 0 to %d", e.Partition, len(h.parts)-1)
	}
	if e.Offset < h.Starts[e.Partition] {
		return fmt.Errorf("offset: is %d, must be at least %d, where partition %d begins", e.Offset, h.Starts[e.Partition], e.Partition)
	}
	p := h.parts[e.Partition]
	p.next = max(p.next, e.Offset+1)
	switch r, err := h.codec.Decode(e.Value); {
	case errors.Is(err, lease.ErrNewer):
		h.newer++
		p.readNewer(e)
	case err == nil:
		h.result.Records++
		if r.Name != "" {
			h.names[r.Session.Process] = r.Name
		}
		if e.Time.After(h.newest) {
			h.newest = e.Time
		}
		p.read(e, r)
		if len(h.terms) > h.most {
			return fmt.Errorf("terms: are more than %d up to offset %d of partition %d: give the records before it alone, with --file", h.most, e.Offset, e.Partition)
		}
	}
	return nil
}

// Result returns what the records read so far tell.
func (h *History) Result() Result {
	out := h.result
	out.Terms = slices.Clone(h.terms)
	for _, p := range h.parts {
		out.From = append(out.From, p.from())
		for _, i := range p.open {
			p.note(&out.Terms[i])
		}
	}
	slices.SortFunc(out.Terms, func(a, b Term) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Token, b.Token))
	})
	out.Faults, out.Unproven = append([]Fault{}, out.Faults...), append([]string{}, h.gaps()...)
	return out
}

// Names returns the names of all processes that the records name, by id.
func (h *History) Names() map[string]string { return maps.Clone(h.names) }

// Newest returns the latest timestamp of any record of this group and version.
func (h *History) Newest() time.Time { return h.newest }

// gaps says what these records cannot prove.
func (h *History) gaps() (out []string) {
	for _, p := range h.parts {
		switch start := h.Starts[p.index]; {
		case start == 0 || p.again:
		case !p.fold.Known() && h.Ends[p.index] > start:
			out = append(out, fmt.Sprintf("partition %d: the log begins at offset %d, and no record behind it tells who led: nothing is provable", p.index, start))
		case p.fold.Known():
			out = append(out, fmt.Sprintf("partition %d: the log begins at offset %d, and the record at %d is the first that tells who led: what was before is not provable",
				p.index, start, p.knownAt))
		}
		if end := h.Ends[p.index]; p.next < end {
			out = append(out, fmt.Sprintf("partition %d: the log ends at offset %d, and no record from %d on was read: what was there is not provable", p.index, end, p.next))
		}
	}
	if h.newer > 0 {
		out = append(out, fmt.Sprintf("%d records are of a newer version: what their senders led is not provable; use that version's neli", h.newer))
	}
	if n := h.result.Waits - h.result.Shown; n > 0 {
		out = append(out, fmt.Sprintf("%d of %d waits: the claimant has no record from before the wait, or records have no time", n, h.result.Waits))
	}
	return out
}
