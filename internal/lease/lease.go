package lease

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goneli/neli/internal/clock"
)

// Rules are the parameters of one process in the protocol.
type Rules struct {
	Process string        // random, fresh at every boot: the process's id in the group
	Name    string        // for people; cut off to fit into a record
	T       time.Duration // the lease of this process's sessions, at most clock.Tmax
	Rho     float64       // ρ, the largest rate error of anybody's raw clock
	History int           // K: a Snapshot is due after at most that many records

	// Longest is the longest T that any member may have; 0 means clock.Tmax. Set it only if every
	// newcomer must learn the same value before it can claim.
	Longest time.Duration

	// Dense says that the offsets of the log have no gaps. A record beyond the next offset
	// then proves that the records in between were lost on their way.
	Dense bool
}

func (r *Rules) longest() time.Duration {
	if r.Longest > 0 {
		return r.Longest
	}
	return clock.Tmax
}

// Lease is one process's view of one log. It is not safe for concurrent use.
type Lease struct {
	rules Rules
	fold  fold
	join  *join // what is known before the fold is; nil once the fold is known
	own   own
	trail trail

	read    int64         // highest offset consumed
	newerAt clock.Instant // see Newer
	origin  bool          // see Origin
	changed []int32       // scratch
	won     bool          // scratch: an own Claim was found valid

	doubt       *doubt          // nil: nobody contradicts the fold
	disbelieved map[string]bool // processes whose Snapshots are not adopted until believeAt
	believeAt   clock.Raw
}

// own is the state of this process's present session.
type own struct {
	session   Session
	key       uint64 // the hash of session
	seq       uint64
	v         clock.Instant // V; zero: no evidence
	ballot    int64         // the largest ballot of the session's evidence read back
	sent      []stamp       // own records in flight except Releases, oldest first
	claiming  roleSet       // roles of Claims in flight, each in one Claim only
	claims    []pending
	forgotten map[int32]int64 // role → token that this process no longer leads by, but still holds in the fold
}

// stamp is a clock reading taken before a record was appended.
type stamp struct {
	seq uint64
	at  clock.Instant
}

// pending is an own Claim that has not come back.
type pending struct {
	seq   uint64
	at    clock.Instant
	roles []int32
}

// New returns a lease that knows nothing; Begin must be called first.
func New(rules Rules) *Lease {
	rules.Name = clip(rules.Name)
	l := &Lease{rules: rules}
	l.own.forgotten = map[int32]int64{}
	return l
}

// clip cuts a name to what Decode accepts: valid UTF-8 of at most maxName bytes.
func clip(name string) string {
	name = strings.ToValidUTF8(name, "?")
	for len(name) > maxName {
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	return name
}

// Begin starts a new session that reads from offset s: at boot, whenever the read position jumps
// or reading may have stopped, and after an alarm. now must have been read after s was known. The
// process holds nothing any more, and does not know the fold, since it may have missed Claims.
// whole says that s is 0 and that nothing was ever deleted from the log, so that the process will
// read every Claim that was ever made.
func (l *Lease) Begin(s int64, whole bool, now clock.Instant) {
	l.renew()
	l.fold = newFold()
	l.trail = trail{}
	l.doubt = nil
	clear(l.own.forgotten)
	l.read = s - 1
	l.newerAt = now
	l.join = newJoin(s, l.rules.longest(), now)
	if whole {
		// Nobody held anything before s. The wait of T covers a topic that was recreated, against
		// the rules, by members with the same T.
		l.join.bound = l.rules.T
	}
}

// Origin says whether, with the next record, all records that were ever in this log will have been read,
// from offset 0 on. The log must have had no earlier incarnation when that record was appended.
func (l *Lease) Origin(yes bool) { l.origin = yes }

// renew begins a new session on the same fold. This process no longer leads the roles of the
// former session, and treats that session's Claims like another process's.
func (l *Lease) renew() {
	l.own.session = Session{l.rules.Process, l.own.session.N + 1}
	l.own.key = sessionKey(l.own.session)
	l.own.v, l.own.ballot = clock.Instant{}, 0
	l.own.claims = nil
	clear(l.own.claiming)
	clear(l.own.forgotten)
}

// Session returns the present session.
func (l *Lease) Session() Session { return l.own.session }

// Known reports whether the fold is known.
func (l *Lease) Known() bool { return l.join == nil }

// Offset returns the highest offset consumed.
func (l *Lease) Offset() int64 { return l.read }

// V returns when the newest evidence of the present session that was read back had been sent; zero if none was.
func (l *Lease) V() clock.Instant { return l.own.v }

// Back returns the largest ballot among the present session's evidence that was read back.
func (l *Lease) Back() int64 { return l.own.ballot }

// Leads is the rule: this process leads role iff its session holds it by the fold, its
// token is not forgotten, and V is younger than Hold(T). It returns the token.
func (l *Lease) Leads(role int32, now clock.Instant) (token int64, ok bool) {
	token, ok = l.Mine(role)
	return token, ok && l.young(now)
}

// Mine returns the token under which the present session holds role. ok is false if it does not
// hold the role or has forgotten it.
func (l *Lease) Mine(role int32) (token int64, ok bool) {
	if l.join != nil {
		return none, false
	}
	h := l.fold.holderOf(role)
	if h == nil || h.key != l.own.key || h.Session != l.own.session { // in most cases comparing the keys is enough, and faster
		return none, false
	}
	token = l.fold.tokens[role]
	if gone, yes := l.own.forgotten[role]; yes && gone == token {
		return none, false
	}
	return token, true
}

// Holding returns how many roles the present session holds, including forgotten ones.
func (l *Lease) Holding() int {
	if l.join != nil {
		return 0
	}
	if s := l.fold.find(l.own.session); s != nil {
		return s.held
	}
	return 0
}

// young reports whether V sustains leadership at time now.
func (l *Lease) young(now clock.Instant) bool { return Young(now, l.own.v, l.rules.T) }

// Young is the rule of Koutanov's paper, 0 ≤ now − V < T, with T shortened to Hold(T).
func Young(now, v clock.Instant, t time.Duration) bool {
	if v == (clock.Instant{}) {
		return false
	}
	age := now.Age(v)
	return 0 <= age && age < clock.Hold(t)
}

// Lapsed reports whether the present session holds roles in the fold that it no longer leads, because V is too old.
func (l *Lease) Lapsed(now clock.Instant) bool { return l.Holding() > 0 && !l.young(now) }

// FreeAt returns the time from which nobody leads role by any clock, if nothing more is read
// until then. It is Never while the fold is not known, and while others contradict it and no
// majority confirms it. It is zero for a free role, unless a record of a newer version was read:
// its sender may hold any role.
func (l *Lease) FreeAt(role int32) clock.Raw {
	if l.join != nil || l.Doubtful() {
		return clock.Never
	}
	at := clock.Raw(0)
	if h := l.fold.holderOf(role); h != nil {
		at = h.freeAt(l.rules.Rho)
	}
	if l.fold.newer != none {
		at = max(at, clock.FreeAt(l.newerAt.Raw, l.rules.longest(), l.rules.Rho))
	}
	return at
}

// FreshAt returns the time from which a process that does not know the fold may claim, if nothing
// more is read until then. It is Never if the fold is known.
func (l *Lease) FreshAt() clock.Raw {
	if l.join == nil {
		return clock.Never
	}
	return l.join.freshAt(l.rules.Rho)
}

// Newer returns when the newest record of a newer version was read or first learnt of. ok is false
// if there is none, if a valid Claim has outlived it, or if the fold is not known.
func (l *Lease) Newer() (at clock.Instant, ok bool) {
	return l.newerAt, l.join == nil && l.fold.newer != none
}
