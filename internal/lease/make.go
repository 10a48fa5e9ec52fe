package lease

import (
	"cmp"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// The methods here make records to append. now must have been read before the call; it
// becomes the record's stamp. The records may reach the log in any order.

// record numbers a record, and remembers its stamp unless it is a Release.
func (l *Lease) record(k Kind, now clock.Instant) Record {
	l.own.seq++
	r := Record{Kind: k, Session: l.own.session, Name: l.rules.Name, Read: l.read, Seq: l.own.seq, Longest: Unsaid}
	if l.join == nil {
		r.Longest = l.fold.longest()
	}
	if k != Release {
		l.own.stamp(l.own.seq, now, l.rules.T)
	}
	if k == Beat || k == Claim {
		r.T = l.rules.T
	}
	return r
}

// stamp remembers when a record was sent, and drops stamps older than T, which no longer prove anything.
func (w *own) stamp(seq uint64, now clock.Instant, t time.Duration) {
	n := 0
	for n < len(w.sent) && now.Age(w.sent[n].at) > t {
		n++
	}
	w.sent = append(w.sent[:copy(w.sent, w.sent[n:])], stamp{seq, now})
}

// back notes that a record was read back. It returns the record's stamp, or zero if it has
// none (a Release) or one older than T.
func (w *own) back(seq uint64, now clock.Instant, t time.Duration) clock.Instant {
	w.resolve(seq)
	i, ok := slices.BinarySearchFunc(w.sent, seq, func(s stamp, seq uint64) int { return cmp.Compare(s.seq, seq) })
	if !ok {
		return clock.Instant{}
	}
	at := w.sent[i].at
	w.sent = slices.Delete(w.sent, i, i+1)
	if now.Age(at) > t {
		return clock.Instant{}
	}
	return at
}

// resolve notes that a Claim is no longer in flight.
func (w *own) resolve(seq uint64) {
	i := slices.IndexFunc(w.claims, func(p pending) bool { return p.seq == seq })
	if i < 0 {
		return
	}
	for _, role := range w.claims[i].roles {
		w.claiming.remove(role)
	}
	w.claims = slices.Delete(w.claims, i, i+1)
}

// Word makes a Hello, Ping or Pong. The fold does not depend on these.
func (l *Lease) Word(k Kind, now clock.Instant) Record { return l.record(k, now) }

// Beat makes a Beat. It returns false if the session has lapsed or holds nothing.
func (l *Lease) Beat(now clock.Instant) (Record, bool) {
	if l.Holding() == 0 || l.Lapsed(now) {
		return Record{}, false
	}
	return l.record(Beat, now), true
}

// MayClaim reports whether the rules allow this process to claim role at time now. If the fold is
// not known, they allow one fresh Claim of any roles.
func (l *Lease) MayClaim(role int32, now clock.Instant) bool {
	if l.join != nil {
		return len(l.own.claims) == 0 && now.Raw >= l.FreshAt()
	}
	if l.own.claiming.has(role) || now.Raw < l.FreeAt(role) {
		return false
	}
	h := l.fold.holderOf(role)
	return h == nil || h.Session != l.own.session
}

// Claim makes a Claim of those of the given roles (ascending) that this process may claim, at
// most MaxClaim of them. It returns false if there are none, or if the session has lapsed. A Claim
// is in flight until it is read back, reported as failed, or given up.
func (l *Lease) Claim(roles []int32, now clock.Instant) (Record, bool) {
	var may []int32
	for _, role := range roles {
		if len(may) == MaxClaim {
			break
		}
		if l.MayClaim(role, now) {
			may = append(may, role)
		}
	}
	if len(may) == 0 || l.Lapsed(now) {
		return Record{}, false
	}
	r := l.record(Claim, now)
	r.Roles, r.Fresh = may, l.join != nil
	l.own.claims = append(l.own.claims, pending{r.Seq, now, may})
	for _, role := range may {
		l.own.claiming.add(role)
	}
	return r, true
}

// Claiming returns how many Claims are in flight, and when the oldest was sent.
func (l *Lease) Claiming() (n int, oldest clock.Instant) {
	if n = len(l.own.claims); n > 0 {
		oldest = l.own.claims[0].at
	}
	return n, oldest
}

// Failed notes that the append of a Claim was not confirmed. The Claim may still be in the log.
func (l *Lease) Failed(id Session, seq uint64) {
	if id == l.own.session {
		l.own.resolve(seq)
	}
}

// GiveUpClaims forgets the Claims in flight that were sent until a time, since they may be lost. If
// there are any and the session holds nothing, a new session replaces it, so that a Claim that
// comes back after all is treated like another process's.
func (l *Lease) GiveUpClaims(sent clock.Instant) {
	for len(l.own.claims) > 0 && l.own.claims[0].at.Mono <= sent.Mono {
		l.own.resolve(l.own.claims[0].seq)
		if l.Holding() == 0 {
			l.renew()
		}
	}
}

// Lapse ends the present session for good if it has lapsed, and makes the Releases of its roles.
// The caller must call it first whenever it is about to make other records.
func (l *Lease) Lapse(now clock.Instant) []Record {
	if !l.Lapsed(now) {
		return nil
	}
	former := l.own.session
	l.renew()
	return l.releases(former, now, func(int32) bool { return true })
}

// Forget ends the leadership of roles that the present session holds: from now on Leads is false.
// The application must have stopped its work, or be overdue. Call Release afterwards to tell the others.
func (l *Lease) Forget(roles []int32) {
	for _, role := range roles {
		if token, ok := l.Mine(role); ok {
			l.own.forgotten[role] = token
		}
	}
}

// Release makes the Releases of those of the given roles that were forgotten but are still held in the fold.
func (l *Lease) Release(roles []int32, now clock.Instant) []Record {
	if l.join != nil {
		return nil
	}
	return l.release(roles, l.own.session, now)
}

// Unreleased makes the Releases of all roles that were forgotten but are still held in the fold,
// and of the roles that this process's former sessions hold. A Release may be lost, so it is made
// again until it is read back.
func (l *Lease) Unreleased(now clock.Instant) []Record {
	if l.join != nil {
		return nil
	}
	var out []Record
	if len(l.own.forgotten) > 0 {
		out = l.releases(l.own.session, now, func(role int32) bool {
			_, gone := l.own.forgotten[role]
			return gone
		})
	}
	for _, id := range l.former() {
		out = append(out, l.releases(id, now, func(int32) bool { return true })...)
	}
	return out
}

// Owing reports whether Unreleased would make any record.
func (l *Lease) Owing() bool {
	return l.join == nil && (len(l.own.forgotten) > 0 || len(l.former()) > 0)
}

// former returns this process's former sessions that still hold something.
func (l *Lease) former() []Session {
	var ids []Session
	for id := range l.fold.index {
		if id.Process == l.rules.Process && id != l.own.session {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b Session) int { return cmp.Compare(a.N, b.N) })
	return ids
}

// releases makes the Releases of one of this process's sessions, for those of its roles that satisfy which.
func (l *Lease) releases(id Session, now clock.Instant, which func(int32) bool) []Record {
	i, ok := l.fold.index[id]
	if !ok {
		return nil
	}
	var roles []int32
	for role, token := range l.fold.tokens {
		if token != none && l.fold.holders[role] == i && which(int32(role)) {
			roles = append(roles, int32(role))
		}
	}
	return l.release(roles, id, now)
}

// release makes Releases in the name of a session: several, if one would be too large.
func (l *Lease) release(roles []int32, id Session, now clock.Instant) []Record {
	mine := slices.DeleteFunc(slices.Clone(roles), func(role int32) bool {
		h := l.fold.holderOf(role)
		if h == nil || h.Session != id {
			return true
		}
		_, leads := l.Mine(role) // Forget comes first
		return leads
	})
	var out []Record
	for part := range l.chunks(mine) {
		r := l.record(Release, now)
		r.Session = id
		r.Ended = part
		out = append(out, r)
	}
	return out
}
