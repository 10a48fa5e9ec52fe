package neli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/lease"
)

// Who leads, as others see it: what a process has read of the logs, told with its age.

// Status is what is known of who holds a role.
type Status int

const (
	// Unknown: this process has not read enough yet, or lost its place in the log. A role
	// that nobody holds is so until all was read that was in the log when reading began.
	// That ends with a snapshot, within round trips if anybody else is there, or with
	// the first claim.
	Unknown Status = iota
	// Vacant: no leader. The holder has released, or nothing was read of it for T′,
	// by which time its lease is over by any clock. (T′ is the holder's
	// HeartbeatTimeout, corrected for MaxClockDrift.) A process that is cut off reads nothing either,
	// and so takes every role for vacant after T′.
	Vacant
	// Held: evidence that the holder is alive was read less than T′ ago.
	Held
)

func (s Status) String() string { return nameOf(int(s), statusNames[:]...) }

var statusNames = [...]string{"unknown", "vacant", "held"}

// Holder is who held a role when a certain record was written: the newest one of
// its term that was read here.
type Holder struct {
	// Name is the holder's Config.Name: put into it what others need to reach it.
	Name string `json:"name"`
	// Member is the holder's random id, as in Member.ID: names need not be unique.
	Member string `json:"member"`
	// Token is the fencing token of the term. On small logs it is 0 unless the holder is
	// this process: nobody else knows it.
	Token int64 `json:"token"`
	// Since is when this process read the claim with which the term began. If it
	// came later, or lost its place in the log meanwhile, it is when it first learnt
	// of the term, which began some time before. By this process's wall clock.
	Since time.Time `json:"since,omitzero"`
	// Seen is when this process read the record. By its wall clock.
	Seen time.Time `json:"seen"`
	// Age is how long before the answer that was: the longer of what the monotonic
	// and the wall clock say, so that a suspension counts. The record was written
	// earlier than it was read: by the delay of delivery, and for a process that was
	// cut off and catches up, by as long as that lasted. JSON has it in seconds.
	Age time.Duration `json:"age"`
}

// Standing is what is known of some roles of one partition: those that have the same
// holder and token, or none.
//
// In JSON its roles are ranges, "0-4,9", with their number beside it as "count".
type Standing struct {
	Partition int    `json:"partition"`
	Status    Status `json:"status"`
	Holder    Holder `json:"holder,omitzero"` // if Held

	roles []int
}

// Roles yields the roles that the Standing is of, ascending.
func (s Standing) Roles() iter.Seq[int] { return slices.Values(s.roles) }

// Holder returns who holds role, as far as this process has read. ok is false when
// nobody is known to: the holder has released, or was silent for so long that its
// lease is over, or nothing is known yet (Watch tells which), or role is not below
// R here.
//
// What it promises is a statement about the past: the holder held the role, with
// that token, at the time of a record which this process read Age ago. What it does
// not promise is that the holder still does; so it says where to send a request,
// and whom to ask, and the leader that gets it looks at IsLeaderOf. It is no check
// of leadership, be it one's own, and no substitute for the fencing token.
//
// A process that has just started knows nothing before it has read a snapshot: within
// round trips, if anybody else is there. Any process may ask, whether it contends or not. In
// non-exclusive mode ok is false.
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
	h := Holder{Name: g.Name, Member: g.Session.Process, Token: n.set.tokenBase + g.Token, Since: g.Since.Time(), Seen: g.Heard.Time(),
		Age: now.Age(g.Heard)}
	if n.set.small && g.Token == 0 {
		h.Token = 0
	}
	return h
}

// Watch yields who holds the roles below R: first what is known now, then what changes;
// of roles of which nothing is known yet, as soon as something is. Roles of a partition
// that have the same holder and token come in one Standing, and so do those that nobody
// holds (Vacant, be it by release or by silence): never one for each of thousands. A
// Standing names the roles of which something else was told before, or nothing. A new
// term of the same holder is a change, too; a beat is not. Each is a statement about the
// past, as Holder's is.
//
// A consumer that is slow misses what was in between, and is told what is so when
// it asks for more; it holds nobody up, and costs eight bytes for each role. There may
// be any number of Watches.
//
// The sequence ends when ctx does, with Close, and when this Neli fails (Await
// tells why). It has no goroutine, so that leaving the loop early leaves nothing
// behind. In non-exclusive mode it ends at once.
func (n *Neli) Watch(ctx context.Context) iter.Seq[Standing] {
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
	if s.Status == Held {
		s.Holder = n.holder(of.Holder, now)
	}
	return s
}

// Standings returns what is known of all roles below R at this instant: what a Watch
// that begins now yields first, and beside it, as Unknown, the roles of which nothing
// is known. Roles of a partition that have the same holder and token come in one
// Standing, and so do those that nobody holds; so there are as many for a partition as
// claims of which something is left, whatever R is, and one for each role only where
// each was claimed, or transferred, by itself. They are in the order of Partition, then
// of the lowest role.
//
// Each is a statement about the past, as Holder's is. The call takes a time that grows
// with R (some ten milliseconds for a million roles), for which nothing else is read:
// whoever wants to follow what changes uses Watch. It returns nil in non-exclusive mode, until the
// partitions are known, and once this Neli is closing or has ended.
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
	// ID is random: it tells this process from all others, and from those that had
	// its name before.
	ID   string `json:"id"`
	Self bool   `json:"self"` // it is this process
	// Nominated: it may claim roles. With Assigned nomination the group has assigned
	// it at least one partition; with Open it contends.
	Nominated bool `json:"nominated"`
	Priority  int  `json:"priority"` // its Config.Priority
	// Heard is when this process last heard it say so, by the wall clock, and Age how
	// long before the answer that was. For this process itself it is now. JSON has Age
	// in seconds.
	Heard time.Time     `json:"heard"`
	Age   time.Duration `json:"age"`
}

// Members returns the processes that belong to the group, by name, this one
// included if it is not an observer (observers say nothing, so nobody knows them).
//
// Each announces itself every five seconds; of more than 25, all together say five
// announcements a second. One that closes is gone at once; one that crashes or is cut
// off, after three announcements have not come (15 s). A process that has just started
// knows all others after one of each (5 s), or sooner with CallMembers. What is said
// of Holder goes for this, too: it is a statement about the past, with its age. In
// non-exclusive mode, and after Close, it returns nil.
func (n *Neli) Members() []Member {
	if n.core.elector == nil || n.ended() != nil {
		return nil
	}
	known, now := n.core.elector.Members()
	ms := make([]Member, len(known))
	for i, m := range known {
		ms[i] = Member{Name: m.Name, ID: m.Process, Self: m.Self, Nominated: m.Nominated, Priority: m.Priority,
			Heard: m.Heard.Time(), Age: now.Age(m.Heard)}
	}
	slices.SortFunc(ms, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return ms
}

// CallMembers asks all members of the group to announce themselves, and returns nil once the call
// is in the topic, where they read it. Members then knows them within a second in a group of up
// to 20. A larger group spreads its answers, 20 a second: half of a hundred members are known after
// two or three seconds. Members of a version that does not know the call announce themselves as
// usual.
//
// It is for tools that have just started and want to know who is there; any process may call, an
// observer, too. It takes WRITE on the topic. An observer that may not write watches on, and its
// call fails after three seconds. Where no broker is reached the call waits: give ctx a deadline.
//
// Errors: ErrNoAnswer, if the log refuses the call; ErrClosed or what ended this Neli; the cause of
// ctx, with what the log said of the call. It needs exclusive mode. Do not call it regularly: each answer is read by all members.
func (n *Neli) CallMembers(ctx context.Context) error {
	switch {
	case ctx == nil:
		return errors.New("neli: CallMembers: ctx is nil")
	case n.core.elector == nil:
		return errors.New("neli: CallMembers: needs Mode Exclusive")
	}
	err := n.ended()
	if err == nil {
		err = n.core.elector.Call(ctx)
	}
	if err = n.outcome(err); err != nil {
		return n.set.secrets.Err(fmt.Errorf("neli: CallMembers: %w", err))
	}
	return nil
}

// How what others see is written as JSON, for pages and programs in other languages:
// durations are seconds, a status is a word, roles are ranges. What was written can be
// read again.

// seconds is a duration as JSON has it.
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

// MarshalText returns "unknown", "vacant" or "held".
func (s Status) MarshalText() ([]byte, error) { return textOf("Status", int(s), statusNames[:]...) }

// UnmarshalText reads what MarshalText wrote.
func (s *Status) UnmarshalText(b []byte) error { return ofText(s, "Status", b, statusNames[:]...) }

// These have the fields of a type and none of its methods.
type (
	plainHolder   Holder
	plainMember   Member
	plainStanding Standing
)

// MarshalJSON writes Age in seconds. Token is a number of up to 63 bits, which
// JavaScript rounds from 2^53 on.
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

// MarshalJSON writes the roles as ranges, and how many they are.
func (s Standing) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainStanding
		Roles string `json:"roles"`
		Count int    `json:"count"`
	}{plainStanding(s), rangesOf(s.roles), len(s.roles)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Standing) UnmarshalJSON(b []byte) error {
	of := struct {
		*plainStanding
		Roles string `json:"roles"`
	}{plainStanding: (*plainStanding)(s)}
	if err := json.Unmarshal(b, &of); err != nil {
		return err
	}
	var err error
	s.roles, err = parseRanges(of.Roles)
	return err
}

// rangesOf writes ascending roles as ranges: "0-4,9".
func rangesOf(roles []int) string {
	var b []byte
	for i := 0; i < len(roles); {
		k := i + 1
		for k < len(roles) && roles[k] == roles[k-1]+1 {
			k++
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(roles[i]), 10)
		if k > i+1 {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(roles[k-1]), 10)
		}
		i = k
	}
	return string(b)
}

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
