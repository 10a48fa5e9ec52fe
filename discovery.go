package neli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/ranges"
)

// Discovery: which process leads a role, as far as this process has read the log, and how old that knowledge is.

// Status is what this process knows about the holder of a role.
type Status int

const (
	// StatusUnknown: this process has not read enough yet, or has lost its place in the log. A role
	// without a holder stays StatusUnknown until this process has read all records that were in the log
	// when it began, and a snapshot (within round trips if any other process is there) or the first
	// claim.
	StatusUnknown Status = iota
	// StatusVacant: the role has no leader. The holder has released it, or this process has read nothing
	// of the holder for W(T), after which the holder's lease is over by any clock. (W(T) is the
	// holder's HeartbeatTimeout, corrected for MaxClockDrift.) A process that is cut off reads
	// nothing, and so reports every role as StatusVacant after W(T).
	StatusVacant
	// StatusHeld: this process has read evidence of the holder within the last W(T).
	StatusHeld
)

// String returns "unknown", "vacant" or "held".
func (s Status) String() string { return nameOf(int(s), statusNames[:]...) }

var statusNames = [...]string{"unknown", "vacant", "held"}

// Holder is the process that held a role when a certain record was written: the newest record of
// its term that this process has read.
type Holder struct {
	Name string `json:"name"` // the holder's Config.Name
	// Member is the holder's random id, as Member.ID. Names need not be unique.
	Member string `json:"member"`
	// Advertise and Zone are the holder's, as it has announced them. They are empty if it has none, and
	// until this process has read one of its announcements: up to five seconds after this process has
	// started, or a minute in a group of hundreds. Watch does not yield a holder again when they become known.
	// Anybody who can write to the topic can make Advertise point to any host.
	Advertise string `json:"advertise,omitempty"`
	Zone      string `json:"zone,omitempty"`
	// Token is the fencing token of the term. On small logs it is 0 unless the holder is this
	// process, since no other process knows it.
	Token int64 `json:"token"`
	// Since is when this process read the claim that began the term, by its wall clock. If this
	// process started later, or lost its place in the log, Since is when it first learnt of the
	// term, which began earlier.
	Since time.Time `json:"since,omitzero"`
	// Age is the time from reading the record to the answer: the longer of the monotonic and the
	// wall clock's difference, so that a suspension counts. The record is older than Age by the delay of its
	// delivery. For a process that was cut off and is catching up, that delay is as long as the
	// cut was. JSON has Age in seconds.
	Age time.Duration `json:"age"`
}

// Standing is what this process knows about roles of one partition that have the same holder and
// token, or no holder.
//
// In JSON the status is "held", "vacant" or "unknown", the roles are ranges, "0-4,9", and "count" is
// their number.
type Standing struct {
	Partition int
	Status    Status
	Holder    Holder // if StatusHeld

	roles []int
}

// Roles yields the roles of the Standing, ascending.
func (s Standing) Roles() iter.Seq[int] { return slices.Values(s.roles) }

// Holder returns the holder of role, as far as this process has read. ok is false if no holder is
// known: the holder has released the role, or was silent until its lease was over, or nothing is
// known yet (Watch tells which), or role is not below R, or this Neli has ended.
//
// The answer is about the past: the holder held the role, with that token, at the time of a record
// that this process read Age ago. It does not promise that the holder still does. Use it to route
// a request; the leader that gets the request checks IsLeaderOf. It does not replace a check of
// leadership or a fencing token.
//
// A process that has just started knows nothing until it has read a snapshot: within round trips,
// if any other process is there. Any process may ask, whether it contends or not.
func (n *Neli) Holder(role int) (h Holder, ok bool) {
	if n.core.elector == nil || n.ended() != nil || role < 0 || role >= int(n.roles.Load()) {
		return Holder{}, false
	}
	g, now, ok := n.core.elector.Holder(role)
	if !ok {
		return Holder{}, false
	}
	return n.holder(g, now), true
}

func (n *Neli) holder(g lease.Grantee, now clock.Instant) Holder {
	h := Holder{Name: g.Name, Member: g.Session.Process, Token: n.set.TokenBase + g.Token, Since: g.Since.Time(),
		Age: now.Age(g.Heard)}
	known := n.core.elector.Known(h.Member)
	h.Advertise, h.Zone = known.Advertise, known.Zone
	if n.set.majority && g.Token == 0 {
		h.Token = 0
	}
	return h
}

// Watch yields the holders of the roles below R: first everything known now, then every change.
// Roles about which nothing is known follow as soon as something is. Nothing is yielded for roles
// that SetRoles removes. One Standing covers all roles of a partition that have the same holder and
// token, or that have no holder (StatusVacant, whether by release or by silence); it names only roles
// whose state differs from what this Watch yielded before. A new term of the same holder is a
// change; a beat is not. With small logs, a holder is also yielded again, with another Since, if the
// log in which it was first seen begins anew. Each Standing is about the past, as Holder is.
//
// The first look takes as long as Standings does. After that the Watch looks only at roles near
// those that have changed, unless a holder falls silent, is heard again, or there are small logs.
// With more than 4,096 roles, Standings that are yielded together may be of different instants.
//
// A slow consumer misses intermediate states and gets the newest state when it asks for more. It
// delays no other part of the library, and costs eight bytes for each role. There may be any
// number of Watches: they share one look at each change. If there are a hundred or more, changes are
// announced less often: after each, a pause of ten microseconds for each Watch follows.
//
// The sequence ends with ctx (if that is not nil), with Close, and when this Neli fails (Await
// returns why). It uses no goroutine, so leaving the loop early leaks nothing.
func (n *Neli) Watch(ctx context.Context) iter.Seq[Standing] {
	if ctx == nil {
		ctx = context.Background() // a sequence has no error to return
	}
	return func(yield func(Standing) bool) {
		if n.core.elector == nil {
			return
		}
		news, stop := n.core.elector.Notify()
		defer stop()
		w := elector.NewWatcher()
		for ctx.Err() == nil && n.State() == StateLive && n.ended() == nil {
			changes, now := n.core.elector.Changes(w)
			for _, c := range changes {
				if !yield(n.standing(c, now)) {
					return
				}
			}
			if len(changes) > 0 {
				continue
			}
			select {
			case <-news:
			case <-ctx.Done():
			case <-n.closing:
			case <-n.done:
			}
		}
	}
}

func (n *Neli) standing(of elector.Standing, now clock.Instant) Standing {
	s := Standing{Partition: of.Partition, Status: Status(of.Status), roles: of.Roles}
	if s.Status == StatusHeld {
		s.Holder = n.holder(of.Holder, now)
	}
	return s
}

// Standings returns what is known about all roles below R: what a new Watch would yield first,
// plus, as StatusUnknown, the roles about which nothing is known. Roles of a partition with the same
// holder and token share a Standing, and so do those without a holder. So a partition has about as
// many Standings as claims, whatever R is; it has one for each role only if each role was claimed
// or transferred by itself. They are in the order of Partition, then of the lowest role.
//
// Each Standing is about the past, as Holder is. The call takes time in proportion to R, some ten
// milliseconds for a million roles. It looks at 4,096 roles at a time, so that it does not delay
// this process's records. With more roles, the Standings may be of different instants, and up to
// HeartbeatTimeout/50 older than the call, since calls within that time share one look. To follow
// changes use Watch. Standings returns nil until the partitions are known, and once this Neli is
// closing or has ended.
func (n *Neli) Standings() []Standing {
	if n.core.elector == nil || n.State() != StateLive || n.ended() != nil {
		return nil
	}
	known, now := n.core.elector.Standings()
	var ss []Standing
	for _, s := range known {
		ss = append(ss, n.standing(s, now))
	}
	return ss
}

// Member is a process of the group that has announced itself.
type Member struct {
	Name string `json:"name"` // its Config.Name
	// ID is random. It identifies this process among all others, including earlier ones with the same name.
	ID   string `json:"id"`
	Self bool   `json:"self"` // it is this process
	// Nominated: it may claim roles. With Assigned nomination the group has assigned it at least
	// one partition; with Open nomination it contends.
	Nominated bool `json:"nominated"`
	Priority  int  `json:"priority"` // its Config.Priority, or what SetPriority has made of it
	// Advertise and Zone are those of its Config. Anybody who can write to the topic can make Advertise point to any host.
	Advertise string `json:"advertise,omitempty"`
	Zone      string `json:"zone,omitempty"`
	// MaxRoles is its Config.MaxRoles.
	MaxRoles int `json:"max_roles,omitempty"`
	// Roles is R as the member has announced it: it contends for the roles below R.
	Roles int `json:"roles,omitempty"`
	// Age is how long before the answer this process last heard the member's announcement, 0 for
	// this process itself. JSON has Age in seconds.
	Age time.Duration `json:"age"`
}

// Members returns the processes of the group, by name, including this one unless it is an
// observer. Observers do not announce themselves, so nobody knows them.
//
// Each process announces itself every 5 s. With n > 25 processes the interval is n/5 s, a minute at
// most. A process that closes is removed at once. One that crashes or is cut off is removed after
// three intervals without an announcement. A new process knows all others after one interval. As with
// Holder, the answer is about the past and has its age. After Close it is nil.
func (n *Neli) Members() []Member {
	if n.core.elector == nil || n.ended() != nil {
		return nil
	}
	known, now := n.core.elector.Members()
	ms := make([]Member, len(known))
	for i, m := range known {
		ms[i] = Member{Name: m.Name, ID: m.Process, Self: m.Self, Nominated: m.Nominated, Priority: m.Priority, Roles: m.Roles,
			Advertise: m.Advertise, Zone: m.Zone, MaxRoles: m.MaxRoles, Age: now.Age(m.Heard)}
	}
	slices.SortFunc(ms, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return ms
}

// JSON of the types above, for pages and programs in other languages: durations are seconds, a
// status is a word, roles are ranges. Each type reads what it writes.

// seconds is a duration that JSON has in seconds.
type seconds time.Duration

func (s seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

func (s *seconds) UnmarshalJSON(b []byte) error {
	var f float64
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	if f *= float64(time.Second); f < -1<<63 || f >= 1<<63 {
		return fmt.Errorf("neli: duration of %s seconds: too long", b)
	}
	*s = seconds(f)
	return nil
}

// word is a Status that JSON has as a word.
type word Status

func (w word) MarshalText() ([]byte, error) { return textOf("Status", int(w), statusNames[:]...) }

func (w *word) UnmarshalText(b []byte) error { return ofText(w, "Status", b, statusNames[:]...) }

// These types have the fields of the public ones without their methods.
type (
	plainHolder Holder
	plainMember Member
)

// MarshalJSON writes Age in seconds. Token is an integer of up to 63 bits; JavaScript rounds integers from 2^53 on.
func (h Holder) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainHolder
		Age seconds `json:"age"`
	}{plainHolder(h), seconds(h.Age)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (h *Holder) UnmarshalJSON(b []byte) error {
	of := struct {
		*plainHolder
		Age *seconds `json:"age"`
	}{(*plainHolder)(h), (*seconds)(&h.Age)}
	return json.Unmarshal(b, &of)
}

// MarshalJSON writes Age in seconds.
func (m Member) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainMember
		Age seconds `json:"age"`
	}{plainMember(m), seconds(m.Age)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (m *Member) UnmarshalJSON(b []byte) error {
	of := struct {
		*plainMember
		Age *seconds `json:"age"`
	}{(*plainMember)(m), (*seconds)(&m.Age)}
	return json.Unmarshal(b, &of)
}

// standingJSON is the JSON of a Standing.
type standingJSON struct {
	Partition int    `json:"partition"`
	Status    word   `json:"status"`
	Holder    Holder `json:"holder,omitzero"`
	Roles     string `json:"roles"`
	Count     int    `json:"count"`
}

// MarshalJSON writes the status as a word, the roles as ranges, and their number.
func (s Standing) MarshalJSON() ([]byte, error) {
	return json.Marshal(standingJSON{s.Partition, word(s.Status), s.Holder, rangesOf(s.roles), len(s.roles)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Standing) UnmarshalJSON(b []byte) error {
	var of standingJSON
	if err := json.Unmarshal(b, &of); err != nil {
		return err
	}
	roles, err := parseRanges(of.Roles)
	*s = Standing{Partition: of.Partition, Status: Status(of.Status), Holder: of.Holder, roles: roles}
	return err
}

// rangesOf writes ascending roles as ranges: "0-4,9".
func rangesOf(roles []int) string { return ranges.Of(roles, 0) }

// parseRanges reads what rangesOf wrote.
func parseRanges(s string) ([]int, error) {
	if s == "" {
		return nil, nil
	}
	var roles []int
	for r := range strings.SplitSeq(s, ",") {
		low, high, ranged := strings.Cut(r, "-")
		first, err := strconv.ParseUint(low, 10, 31)
		last := first
		if ranged && err == nil {
			last, err = strconv.ParseUint(high, 10, 31)
		}
		if err != nil || last < first || last >= maxRoles || len(roles) > 0 && int(first) <= roles[len(roles)-1] {
			return nil, fmt.Errorf("neli: roles: %q: must be ascending ranges of numbers below %d", r, maxRoles)
		}
		for role := first; role <= last; role++ {
			roles = append(roles, int(role))
		}
	}
	return roles, nil
}
