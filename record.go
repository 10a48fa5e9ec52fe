package neli

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The wire form: one JSON object a record, readable with any console consumer.
//
//	{"neli":1,"kind":"beat","group":"app","member":"K3…","name":"host_1_2","token":17,"read":40,"seq":9}
//
// What only some kinds have (to, pinned, moved, wants, priority, leaving) plays no part in
// the lease.
//
// Whatever is in the topic is untrusted: decode refuses what does not have
// exactly the fields that its kind needs.

const (
	wireVersion   = 1
	maxRecordSize = 64 << 10 // a Hello that wants 10,000 partitions fits
	maxIDLength   = 64
	maxNameLength = 256
	maxPriority   = 1_000_000
)

type kind string

const (
	kindClaim   kind = "claim"
	kindBeat    kind = "beat"
	kindRelease kind = "release"
	kindHello   kind = "hello"
)

// record is what processes tell each other through a partition's log.
type record struct {
	kind   kind
	group  string
	member string // incarnation of one partition's lease; of the process in a Hello
	name   string // for people
	token  int64  // offset of the sender's valid claim; noToken in claims and hellos
	read   int64  // highest offset the sender had consumed, −1 in an empty log; in a Hello: that it answers, or −1
	seq    uint64 // the sender's own number of this record
	wants  []int  // Hello only: nominated partitions; nil means all

	leaving  bool // Hello only: the process is closing
	priority int  // Hello only: how much it is wanted as a leader

	to     string // Release: the process that is to claim next, if any; Hello: who is asked to answer
	pinned bool   // Release only: and keep the partition whoever else has a better right to it
	moved  bool   // Release only: for the sake of balance or preference
}

// wire is record as JSON. Pointers tell absent from zero.
type wire struct {
	Version int    `json:"neli"`
	Kind    kind   `json:"kind"`
	Group   string `json:"group"`
	Member  string `json:"member"`
	Name    string `json:"name,omitempty"`
	Token   *int64 `json:"token,omitempty"`
	Read    *int64 `json:"read,omitempty"`
	Seq     uint64 `json:"seq,omitempty"`
	Wants   *[]int `json:"wants,omitempty"`
	Leaving bool   `json:"leaving,omitempty"`

	Priority int    `json:"priority,omitempty"`
	To       string `json:"to,omitempty"`
	Pinned   bool   `json:"pinned,omitempty"`
	Moved    bool   `json:"moved,omitempty"`
}

var (
	errForeign   = errors.New("record of another group")
	errNewer     = errors.New("record of a newer version")
	errMalformed = errors.New("malformed record")
)

// aside reports whether a Hello is said to one process, in the log of the partition that it
// is about: a call (to), or the answer to one (read).
func (r record) aside() bool { return r.to != "" || r.read >= 0 }

func (r record) encode() []byte {
	w := wire{Version: wireVersion, Kind: r.kind, Group: r.group, Member: r.member, Name: r.name}
	if r.kind == kindHello {
		w.Leaving, w.Priority, w.To = r.leaving, r.priority, r.to
		if r.wants != nil {
			w.Wants = &r.wants
		}
		if r.read >= 0 {
			w.Read = &r.read
		}
	} else {
		w.Read, w.Seq, w.To, w.Pinned, w.Moved = &r.read, r.seq, r.to, r.pinned, r.moved
		if r.kind != kindClaim {
			w.Token = &r.token
		}
	}
	b, err := json.Marshal(w)
	if err != nil {
		panic("neli: encoding a record: " + err.Error()) // no field of wire can fail
	}
	return b
}

// decode reads a record of group. The error is errForeign, errNewer or wraps
// errMalformed.
func decode(value []byte, group string) (record, error) {
	if len(value) > maxRecordSize {
		return record{}, fmt.Errorf("%w: %d bytes", errMalformed, len(value))
	}
	var w wire
	// A newer version may give fields other types; it is known by its number.
	if err := json.Unmarshal(value, &w); err != nil && w.Version <= wireVersion {
		return record{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	switch {
	case w.Version > wireVersion:
		return record{}, errNewer
	case w.Version != wireVersion:
		return record{}, fmt.Errorf("%w: version %d", errMalformed, w.Version)
	case w.Group != group:
		return record{}, errForeign
	}
	if err := w.check(); err != nil {
		return record{}, err
	}
	return w.record(), nil
}

func (w *wire) check() error {
	bad := func(what string) error { return fmt.Errorf("%w: %s: %s", errMalformed, w.Kind, what) }
	switch {
	case w.Member == "" || len(w.Member) > maxIDLength:
		return bad("member")
	case len(w.Name) > maxNameLength:
		return bad("name")
	}
	switch w.Kind {
	case kindHello:
		if w.Token != nil || w.Seq != 0 || w.Pinned || w.Moved {
			return bad("token, seq, pinned or moved in a hello")
		}
		if w.Priority < -maxPriority || w.Priority > maxPriority || len(w.To) > maxIDLength || w.Read != nil && *w.Read < 0 {
			return bad("priority, to or read")
		}
		return nil
	case kindClaim:
		if w.Token != nil {
			return bad("token in a claim")
		}
	case kindBeat, kindRelease:
		if w.Token == nil || *w.Token < 0 {
			return bad("token")
		}
	default:
		return fmt.Errorf("%w: unknown kind", errMalformed)
	}
	if w.Read == nil || *w.Read < -1 || w.Seq == 0 || w.Wants != nil || w.Leaving || w.Priority != 0 {
		return bad("read, seq, wants, leaving or priority")
	}
	if (w.To != "" || w.Pinned || w.Moved) && w.Kind != kindRelease || len(w.To) > maxIDLength {
		return bad("to, pinned or moved")
	}
	return nil
}

func (w *wire) record() record {
	r := record{kind: w.Kind, group: w.Group, member: w.Member, name: w.Name, token: noToken, read: -1, seq: w.Seq,
		leaving: w.Leaving, priority: w.Priority, to: w.To, pinned: w.Pinned, moved: w.Moved}
	if w.Token != nil {
		r.token = *w.Token
	}
	if w.Read != nil {
		r.read = *w.Read
	}
	if w.Wants != nil {
		r.wants = append([]int{}, *w.Wants...) // an empty list wants nothing; nil wants all
	}
	return r
}
