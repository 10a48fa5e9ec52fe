package quorum

import (
	"hash/fnv"
	"iter"
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// This file merges the folds of all logs. A process holds a role if it holds it on a
// majority of the logs of each list, by folds that are known. All sessions of a process count as one
// holder, with session number 1.

// together returns the session that stands for all sessions of a process.
func together(process string) lease.Session { return lease.Session{Process: process, N: 1} }

// Known reports whether a majority of the folds is known.
func (q *Lease) Known() bool {
	known := logs(0)
	for log, v := range q.logs {
		if v.begun && v.lease.Known() {
			known = known.with(log)
		}
	}
	return q.enough(known)
}

// witness is one log's statement of a holder.
type witness struct {
	log int
	lease.HolderState
}

// where returns the logs of some witnesses.
func where(said []witness) (on logs) {
	for _, w := range said {
		on = on.with(w.log)
	}
	return on
}

// holder returns the witnesses of the process that holds role on a majority of the logs, or nil.
func (q *Lease) holder(role int32, said []witness) []witness {
	said = said[:0]
	for log, v := range q.logs {
		if h, held := v.lease.HolderOf(role); held {
			said = append(said, witness{log, h})
		}
	}
	if !q.enough(where(said)) {
		return nil
	}
	for i := range said {
		process, n := said[i].Session.Process, 0
		for k := i; k < len(said); k++ {
			if said[k].Session.Process == process {
				said[i+n], said[k] = said[k], said[i+n]
				n++
			}
		}
		if q.enough(where(said[i : i+n])) {
			return said[i : i+n]
		}
	}
	return nil
}

// Held reports whether some process holds role on a majority of the logs, and its lease is not over
// on a majority at time now.
func (q *Lease) Held(role int32, now clock.Instant) bool {
	var room [MaxLogs]witness
	said, over := q.holder(role, room[:]), logs(0)
	for _, w := range said {
		if now.Raw >= w.FreeAt {
			over = over.with(w.log)
		}
	}
	return said != nil && !q.enough(over)
}

// sum merges the witnesses of one process. Its lease lasts for as long as a majority of the logs
// of each list sustains it.
func (q *Lease) sum(said []witness) lease.HolderState {
	h := lease.HolderState{Session: together(said[0].Session.Process), Last: -1}
	live := logs(0)
	for _, w := range said {
		h.Held = max(h.Held, w.Held)
		if w.Last >= q.logs[w.log].end {
			live = live.with(w.log)
		}
	}
	if q.enough(live) {
		h.Last = 0
	}
	for i, l := range q.lists {
		var room [MaxLogs]witness
		in := room[:0]
		for _, w := range said {
			if l.logs.has(w.log) {
				in = append(in, w)
			}
		}
		slices.SortFunc(in, func(a, b witness) int { return int(min(1, max(-1, b.FreeAt-a.FreeAt))) })
		if at := in[l.majority-1].FreeAt; i == 0 || at < h.FreeAt {
			h.FreeAt = at
		}
		slices.SortFunc(in, func(a, b witness) int { return int(min(1, max(-1, b.Heard.Mono-a.Heard.Mono))) })
		if at := in[l.majority-1].Heard; i == 0 || at.Mono < h.Heard.Mono {
			h.Heard = at
		}
	}
	return h
}

// Holder returns the holder of role, even if its lease is over. Token is 0 unless this process is
// the holder and its term has begun: only the holder knows its token. Last is 0 if a majority of the
// logs had evidence of the holder after this process began to read, and −1 otherwise.
func (q *Lease) Holder(role int32) (g lease.Grantee, ok bool) {
	var room [MaxLogs]witness
	said := q.holder(role, room[:])
	if said == nil {
		return g, false
	}
	for _, w := range said {
		on, _ := q.logs[w.log].lease.Holder(role)
		if g.Name == "" || on.Since.Mono < g.Since.Mono {
			g.Name, g.Since = on.Name, on.Since
		}
	}
	h := q.sum(said)
	g.Session, g.Last, g.Heard, g.FreeAt = h.Session, h.Last, h.Heard, h.FreeAt
	if h.Session.Process == q.rules.Process {
		g.Token, _, _ = q.Term(role)
	}
	return g, true
}

// Tenure returns a number above 0 that changes whenever the role is claimed again.
func Tenure(g lease.Grantee) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(g.Session.Process))
	sum := h.Sum64() ^ uint64(g.Since.Mono)*0x9e3779b97f4a7c15 ^ uint64(g.Token)*0xbf58476d1ce4e5b9
	return int64(sum>>1 | 1)
}

// Holders yields the processes that hold something on a majority of the logs, in no particular order.
func (q *Lease) Holders() iter.Seq[lease.HolderState] {
	return func(yield func(lease.HolderState) bool) {
		for _, h := range q.processes() {
			if !yield(h) {
				return
			}
		}
	}
}

// processes returns Holders by process. If a process has several sessions on a log, the session heard last counts.
func (q *Lease) processes() map[string]lease.HolderState {
	said := map[string][]witness{}
	for log, v := range q.logs {
		for h := range v.lease.Holders() {
			id := h.Session.Process
			if i := len(said[id]) - 1; i >= 0 && said[id][i].log == log {
				if h.Heard.Mono > said[id][i].Heard.Mono {
					said[id][i].HolderState = h
				}
				continue
			}
			said[id] = append(said[id], witness{log, h})
		}
	}
	all := map[string]lease.HolderState{}
	for id, some := range said {
		if q.enough(where(some)) {
			all[id] = q.sum(some)
		}
	}
	return all
}

// Each calls of(h) once for every process that holds roles on a majority of the logs, then
// set(role, value) for each of these roles, with the value that of returned for its holder.
func (q *Lease) Each(of func(lease.HolderState) int32, set func(role, value int32)) {
	values := map[string]int32{}
	for id, h := range q.processes() {
		values[id] = of(h)
	}
	var room [MaxLogs]witness
	for role := range q.Roles() {
		if said := q.holder(role, room[:]); said != nil {
			if value, ok := values[said[0].Session.Process]; ok {
				set(role, value)
			}
		}
	}
}

// Roles returns a number above all roles that anybody holds on any log.
func (q *Lease) Roles() int32 {
	roles := int32(0)
	for _, v := range q.logs {
		roles = max(roles, v.lease.Roles())
	}
	return roles
}

// Free returns the roles below the given number that may be contested at time now, ascending.
func (q *Lease) Free(below int32, now clock.Instant) []int32 {
	var free []int32
	for role := range below {
		if q.Vacant(role, now) {
			free = append(free, role)
		}
	}
	return free
}

// Revived returns how often a holder was heard on a log after its lease there was over. FreeAt of the
// holder's roles may then be later than it was.
func (q *Lease) Revived() uint64 { return q.revived }

// FreeAt returns the time from which nobody leads role by any clock, if nothing more is read
// until then. From then on role may be claimed on a majority of the logs.
func (q *Lease) FreeAt(role int32) clock.Raw {
	free := clock.Raw(0)
	for i, l := range q.lists {
		var room [MaxLogs]clock.Raw
		at := room[:0]
		for log, v := range q.logs {
			switch {
			case !l.logs.has(log):
			case !v.begun: // it was never read, so it may hold anything
				at = append(at, clock.Never)
			case v.lease.Known():
				at = append(at, v.lease.FreeAt(role))
			default:
				at = append(at, v.lease.FreshAt())
			}
		}
		slices.Sort(at)
		if at := at[l.majority-1]; i == 0 || at > free {
			free = at
		}
	}
	return free
}

// Owing reports whether Releases are still due on a log that can be reached.
func (q *Lease) Owing(now clock.Instant) bool {
	return slices.ContainsFunc(q.logs, func(v *logView) bool { return v.lease.Owing() && q.reachable(v, now) })
}

// InUse yields the lines of V that some term follows.
func (q *Lease) InUse() iter.Seq[int] {
	return func(yield func(int) bool) {
		var done [1 << MaxLogs]bool // several groups may follow the same line
		for _, g := range q.groups {
			if g.led && len(g.roles) > 0 && !done[g.counts] {
				done[g.counts] = true
				if !yield(int(g.counts)) {
					return
				}
			}
		}
	}
}
