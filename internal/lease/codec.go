package lease

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// On the wire each record is one JSON object, readable with any console consumer:
//
//	{"neli":1,"group":"app","log":"x3…","kind":"beat","process":"K3…","session":2,"read":40,"seq":9,"t":5000000000,"longest":5000000000}
//
// The contents of a log are untrusted: Decode refuses a record that lacks a field of its kind or
// has one of another kind, except raw fields. It ignores unknown fields. Every version can read the
// version and the group of all versions' records, for ever (docs/compatibility.md).

const (
	// Version is the version of the wire form and of the fold.
	Version = 1

	maxProcess  = 64
	maxName     = 256
	maxParts    = 4096
	maxPriority = 1_000_000
	maxWants    = 10_000
	maxPeriod   = time.Hour
)

// Errors of Decode for records that it refuses.
var (
	ErrForeign   = errors.New("record of another group")
	ErrOtherLog  = errors.New("record of another log: a copy or mirror")
	ErrNewer     = errors.New("record of a newer version")
	ErrMalformed = errors.New("malformed record")
)

// Codec writes and reads the records of one group in one log.
type Codec struct {
	Group string
	// Log is the log's id. Records that were copied from another log have another id, and are
	// refused. A log that loses its records gets a new id, so that records still in flight to
	// its former incarnation are refused, too.
	Log string
}

// wire is Record as JSON. Pointers distinguish an absent field from zero.
type wire struct {
	Version int            `json:"neli"`
	Group   string         `json:"group"`
	Log     string         `json:"log"`
	Ballot  int64          `json:"ballot,omitempty"`
	Kind    Kind           `json:"kind"`
	Process string         `json:"process"`
	Session uint64         `json:"session"`
	Name    string         `json:"name,omitempty"`
	Read    *int64         `json:"read"`
	Seq     uint64         `json:"seq"`
	T       time.Duration  `json:"t,omitempty"`
	Longest *time.Duration `json:"longest,omitempty"`

	Roles  string      `json:"roles,omitempty"`
	Fresh  bool        `json:"fresh,omitempty"`
	Ended  []wireGrant `json:"ended,omitempty"`
	To     string      `json:"to,omitempty"`
	Pinned bool        `json:"pinned,omitempty"`
	Moved  bool        `json:"moved,omitempty"`
	Ping   *int64      `json:"ping,omitempty"`
	State  *wireState  `json:"state,omitempty"`
	Hello  *wireHello  `json:"hello,omitempty"`

	// Raw JSON, so that no folded record is malformed because one of these fields has an unexpected form:
	// members that do not know the field fold the record, and all must fold the same.
	Wait     json.RawMessage `json:"wait,omitempty"`
	Request  json.RawMessage `json:"request,omitempty"`
	Answer   json.RawMessage `json:"answer,omitempty"`
	Offer    json.RawMessage `json:"offer,omitempty"`
	Prepared json.RawMessage `json:"prepared,omitempty"`
}

type wireGrant struct {
	Token  int64  `json:"token"`
	Holder int32  `json:"holder,omitempty"`
	Roles  string `json:"roles"`
}

type wireState struct {
	Fold    int          `json:"fold"`
	Part    int          `json:"part"`
	Parts   int          `json:"parts"`
	Hash    string       `json:"hash"` // as text: some JSON readers have fewer than 64 bits for a number
	Newer   *int64       `json:"newer,omitempty"`
	Holders []wireHolder `json:"holders,omitempty"`
	Grants  []wireGrant  `json:"grants,omitempty"`
}

type wireHolder struct {
	Process string        `json:"process"`
	Session uint64        `json:"session"`
	Name    string        `json:"name,omitempty"`
	T       time.Duration `json:"t"`
	Last    int64         `json:"last"`
}

type wireHello struct {
	Priority int           `json:"priority,omitempty"`
	Roles    int           `json:"roles"`
	Wants    *[]int        `json:"wants,omitempty"`
	Leaving  bool          `json:"leaving,omitempty"`
	Period   time.Duration `json:"period,omitempty"`

	Advertise hint            `json:"advertise,omitempty"`
	Zone      hint            `json:"zone,omitempty"`
	MaxRoles  *most           `json:"max_roles,omitempty"`
	Prepares  json.RawMessage `json:"prepares,omitempty"`
}

// Encode writes a record.
func (c Codec) Encode(r *Record) []byte {
	w := wire{Version: Version, Group: c.Group, Log: c.Log, Ballot: r.Ballot, Kind: r.Kind, Process: r.Session.Process, Session: r.Session.N,
		Read: &r.Read, Seq: r.Seq, T: r.T, Roles: packRoles(r.Roles), Fresh: r.Fresh, Ended: packGrants(r.Ended),
		To: r.To, Pinned: r.Pinned, Moved: r.Moved, Wait: packWait(r.Wait), Request: packRequest(r.Request), Answer: packAnswer(r.Answer),
		Offer: packOffer(r.Offer), Prepared: packPrepared(r.Prepared)}
	if r.Kind != Beat && r.Kind != Release {
		w.Name = r.Name // a reader knows a holder's name from its Claim
	}
	if r.Longest != Unsaid {
		w.Longest = &r.Longest
	}
	if r.Kind == Pong {
		w.Ping = &r.Ping
	}
	if s := r.State; s != nil {
		w.State = &wireState{Fold: Version, Part: s.Part, Parts: s.Parts, Hash: strconv.FormatUint(s.Hash, 16), Grants: packGrants(s.Grants)}
		if s.Newer != none {
			w.State.Newer = &s.Newer
		}
		for _, h := range s.Holders {
			w.State.Holders = append(w.State.Holders, wireHolder{h.Session.Process, h.Session.N, h.Name, h.T, h.Last})
		}
	}
	if h := r.Hello; h != nil {
		w.Hello = &wireHello{Priority: h.Priority, Roles: h.Roles, Leaving: h.Leaving, Period: h.Period,
			Advertise: hint(h.Advertise), Zone: hint(h.Zone), Prepares: packPrepares(h.Prepares)}
		if h.Caps {
			w.Hello.MaxRoles = (*most)(&h.MaxRoles)
		}
		if h.Wants != nil {
			w.Hello.Wants = &h.Wants
		}
	}
	b, err := json.Marshal(w)
	if err != nil {
		panic("neli: encoding a record: " + err.Error()) // no field of wire can fail
	}
	return b
}

func packGrants(grants []Grant) []wireGrant {
	var out []wireGrant
	for _, g := range grants {
		out = append(out, wireGrant{g.Token, g.Holder, packRoles(g.Roles)})
	}
	return out
}

// Of returns the codec for an incarnation of a small log. With an empty id it returns this one.
func (c Codec) Of(log string) Codec {
	if log != "" {
		c.Log = log
	}
	return c
}

// Ballot reads the ballot of a record of this group and log, whatever its version. It is 0 if the record
// has none or cannot be read. A leader on a majority of logs must know all ballots, even those of
// records that it cannot decode.
func (c Codec) Ballot(value []byte) int64 {
	var w struct {
		Group  string `json:"group"`
		Log    string `json:"log"`
		Ballot int64  `json:"ballot"`
	}
	if len(value) > MaxRecord {
		of := headerOf(value)
		w.Group, w.Log, w.Ballot = of.group, of.log, of.ballot
	} else {
		_ = json.Unmarshal(value, &w) // a record that is only partly readable may still have its ballot
	}
	if w.Group != c.Group || w.Log != c.Log || w.Ballot < 0 || w.Ballot > MaxBallot {
		return 0
	}
	return w.Ballot
}

// Decode reads a record. Its error is or wraps one of ErrForeign, ErrOtherLog, ErrNewer, ErrMalformed.
func (c Codec) Decode(value []byte) (*Record, error) {
	if len(value) > MaxRecord {
		return nil, c.oversize(value)
	}
	var w wire
	// A newer version may have changed the types of fields, but not those of its number and group.
	err := json.Unmarshal(value, &w)
	switch {
	case err != nil && w.Version <= Version:
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	case w.Version < 1:
		return nil, fmt.Errorf("%w: version %d", ErrMalformed, w.Version)
	case w.Group != c.Group:
		return nil, ErrForeign
	case w.Version > Version:
		return nil, ErrNewer
	case w.Log != c.Log:
		return nil, ErrOtherLog
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	return w.record()
}

// oversize classifies a record that is too large for this version. It may be of a newer version
// with a larger limit, and must then not be skipped as foreign.
func (c Codec) oversize(value []byte) error {
	of := headerOf(value)
	switch {
	case of.version > Version && of.group == c.Group:
		return ErrNewer
	case of.named && of.group != c.Group:
		return ErrForeign
	}
	return fmt.Errorf("%w: %d bytes", ErrMalformed, len(value))
}

// header is what records of all versions have.
type header struct {
	version    int
	group, log string
	named      bool // it has a group
	ballot     int64
}

// headerOf reads the header from the first MaxRecord bytes of a record. However large the record is, it
// costs no more than a record of this version.
func headerOf(value []byte) (h header) {
	d := json.NewDecoder(bytes.NewReader(value[:min(len(value), MaxRecord)]))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return h
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return h
		}
		var field json.RawMessage
		if d.Decode(&field) != nil { // it is cut off
			return h
		}
		switch name {
		case "neli":
			_ = json.Unmarshal(field, &h.version)
		case "group":
			h.named = json.Unmarshal(field, &h.group) == nil
		case "log":
			_ = json.Unmarshal(field, &h.log)
		case "ballot":
			_ = json.Unmarshal(field, &h.ballot)
		}
	}
	return h
}

// check checks the fields that every kind has, and that no kind has another's, except raw fields.
func (w *wire) check() error {
	bad := func(what string) error { return fmt.Errorf("%w: %s: %s", ErrMalformed, w.Kind, what) }
	switch w.Kind {
	case Beat, Claim, Release, Snapshot, Hello, Ping, Pong:
	default:
		return fmt.Errorf("%w: unknown kind", ErrNewer)
	}
	switch {
	case w.Process == "" || len(w.Process) > maxProcess || w.Session == 0:
		return bad("process or session")
	case len(w.Name) > maxName:
		return bad("name")
	case w.Read == nil || *w.Read < -1 || w.Seq == 0:
		return bad("read or seq")
	case w.Ballot < 0 || w.Ballot > MaxBallot:
		return bad("ballot")
	case w.Longest != nil && (*w.Longest < 0 || *w.Longest > clock.Tmax):
		return bad("longest")
	case (w.Kind == Beat || w.Kind == Claim) != (w.T != 0) || w.T < 0 || w.T > clock.Tmax:
		return bad("t")
	case (w.Kind == Claim) != (w.Roles != "") || w.Fresh && w.Kind != Claim:
		return bad("roles or fresh")
	case w.Fresh != (w.Longest == nil) && w.Kind == Claim:
		return bad("only a fresh claim has no longest")
	case (w.Kind == Release) != (len(w.Ended) > 0):
		return bad("ended")
	case (w.Pinned || w.Moved) && w.Kind != Release || len(w.To) > maxProcess:
		return bad("to, pinned or moved")
	case (w.Kind == Ping || w.Kind == Pong) && w.To == "" || w.To != "" && w.Kind != Release && w.Kind != Ping && w.Kind != Pong:
		return bad("to")
	case (w.Kind == Pong) != (w.Ping != nil) || w.Ping != nil && (*w.Ping < 0 || *w.Ping > *w.Read):
		return bad("ping")
	case (w.Kind == Snapshot) != (w.State != nil):
		return bad("state")
	case (w.Kind == Hello || w.Kind == Pong) != (w.Hello != nil):
		return bad("hello")
	case (w.Kind == Beat || w.Kind == Snapshot) && w.Longest == nil:
		return bad("no longest, which its sender must know")
	}
	return nil
}

func (w *wire) record() (*Record, error) {
	r := &Record{Kind: w.Kind, Session: Session{w.Process, w.Session}, Name: w.Name, Read: *w.Read, Seq: w.Seq, T: w.T,
		Ballot: w.Ballot, Longest: Unsaid, Fresh: w.Fresh, To: w.To, Pinned: w.Pinned, Moved: w.Moved}
	if w.Longest != nil {
		r.Longest = *w.Longest
	}
	if w.Kind == Release {
		r.Wait = unpackWait(w.Wait)
	}
	if w.Ping != nil {
		r.Ping = *w.Ping
	}
	var err error
	if r.Roles, err = unpackRoles(w.Roles, MaxClaim); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if r.Ended, err = unpackGrants(w.Ended, *w.Read, 0); err != nil {
		return nil, err
	}
	if w.State != nil {
		if r.State, err = w.State.state(*w.Read); err != nil {
			return nil, err
		}
	}
	if w.Hello != nil {
		if r.Hello, err = w.Hello.announcement(); err != nil {
			return nil, err
		}
	}
	if err = w.talk(r); err != nil {
		return nil, err
	}
	return r, nil
}

func packWait(d time.Duration) json.RawMessage {
	if d == 0 {
		return nil
	}
	return strconv.AppendInt(nil, int64(d), 10)
}

// unpackWait reads a wait, and limits it to Tmax. Any value but a positive integer counts as no wait.
func unpackWait(raw json.RawMessage) time.Duration {
	var d time.Duration
	if len(raw) == 0 || json.Unmarshal(raw, &d) != nil {
		return 0
	}
	return min(max(d, 0), clock.Tmax)
}

// unpackGrants decodes grants. A token above read is malformed.
func unpackGrants(grants []wireGrant, read int64, holders int) ([]Grant, error) {
	var out []Grant
	total := 0
	for _, g := range grants {
		roles, err := unpackRoles(g.Roles, MaxClaim)
		total += len(roles)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		case len(roles) == 0 || total > maxListed:
			return nil, fmt.Errorf("%w: %d roles in %d grants", ErrMalformed, total, len(grants))
		case g.Token < 0 || g.Token > read || g.Holder < 0 || int(g.Holder) > holders:
			return nil, fmt.Errorf("%w: token or holder of a grant", ErrMalformed)
		}
		out = append(out, Grant{g.Token, g.Holder, roles})
	}
	return out, nil
}

func (w *wireState) state(read int64) (*State, error) {
	bad := func(what string) (*State, error) { return nil, fmt.Errorf("%w: state: %s", ErrMalformed, what) }
	if w.Fold != Version {
		return nil, fmt.Errorf("%w: fold %d", ErrNewer, w.Fold)
	}
	hash, err := strconv.ParseUint(w.Hash, 16, 64)
	switch {
	case err != nil:
		return bad("hash")
	case w.Parts < 1 || w.Parts > maxParts || w.Part < 0 || w.Part >= w.Parts:
		return bad("parts")
	case w.Newer != nil && (*w.Newer < 0 || *w.Newer > read):
		return bad("newer")
	}
	s := &State{Part: w.Part, Parts: w.Parts, Hash: hash, Newer: none}
	if w.Newer != nil {
		s.Newer = *w.Newer
	}
	for _, h := range w.Holders {
		if h.Process == "" || len(h.Process) > maxProcess || len(h.Name) > maxName || h.Session == 0 || h.T <= 0 || h.T > clock.Tmax || h.Last < 0 || h.Last > read {
			return bad("holder")
		}
		s.Holders = append(s.Holders, Holder{Session{h.Process, h.Session}, h.Name, h.T, h.Last})
	}
	if s.Grants, err = unpackGrants(w.Grants, read, len(s.Holders)-1); err != nil {
		return nil, err
	}
	return s, nil
}

func (w *wireHello) announcement() (*Announcement, error) {
	if w.Priority < -maxPriority || w.Priority > maxPriority || w.Roles < 0 || w.Roles > MaxRoles || w.Period < 0 || w.Period > maxPeriod {
		return nil, fmt.Errorf("%w: hello: priority, roles or period", ErrMalformed)
	}
	a := &Announcement{Priority: w.Priority, Roles: w.Roles, Leaving: w.Leaving, Period: w.Period,
		Advertise: w.Advertise.orNone(CheckAdvertise), Zone: w.Zone.orNone(CheckZone), Prepares: unpackPrepares(w.Prepares)}
	if w.MaxRoles != nil && *w.MaxRoles >= 0 && *w.MaxRoles <= MaxRoles {
		a.Caps, a.MaxRoles = true, int(*w.MaxRoles)
	}
	if w.Wants != nil {
		if len(*w.Wants) > maxWants {
			return nil, fmt.Errorf("%w: hello: wants", ErrMalformed)
		}
		a.Wants = append([]int{}, *w.Wants...) // an empty list wants nothing; nil wants everything
	}
	return a, nil
}
