package lease

import "fmt"

// simOracle sees every process's clocks and the whole log. It reports what must never happen:
//
//   - two leaders of one role at one true instant
//   - a token led after a larger one, or again after its term ended
//   - a token that is not the offset of an own Claim that is valid by the true fold
//   - a fold that differs from the true one, folded from offset 0
//   - a Snapshot that is not the true fold at its read
//   - an alarm, since this log keeps its promises
//   - a record that is changed by its encoding, or is too large
type simOracle struct {
	roles  []int32 // the roles watched: all, or some if there are many
	newest []int64 // by watched role: the largest token led
	ended  []int64 // by watched role: the largest token led and then lost
}

// watch chooses the roles to look at.
func (q *simOracle) watch(w *simWorld) {
	n := w.pr.roles
	for role := 0; role < n; role += max(1, n/24) {
		q.roles = append(q.roles, int32(role))
		q.newest, q.ended = append(q.newest, none), append(q.ended, none)
	}
}

// look compares what p leads now with what everybody leads. It is called before and after
// everything that a process does, since nobody begins to lead in between.
func (q *simOracle) look(p *simProc) {
	w := p.w
	now := p.clk.Read(w.Now)
	for i, role := range q.roles {
		token, leads := none, false
		if p.alive {
			token, leads = p.l.Leads(role, now)
		}
		if !leads {
			token = none
		}
		if was := p.led[i]; was != none && was != token {
			q.ended[i] = max(q.ended[i], was)
		}
		started := leads && p.led[i] != token
		p.led[i] = token
		if !leads {
			continue
		}
		if started {
			w.count.terms++
		}
		q.leader(p, i, token)
	}
}

// leader checks that p may lead a role.
func (q *simOracle) leader(p *simProc, i int, token int64) {
	w, role := p.w, q.roles[i]
	for _, other := range w.procs {
		if other != p && other.alive {
			if theirs, too := other.l.Leads(role, other.clk.Read(w.Now)); too && w.ofOrigin(p, other) {
				w.Note("two leaders of role %d: %v with token %d and %v with token %d", role, p.l.Session(), token, other.l.Session(), theirs)
			}
		}
	}
	if w.lossy {
		return // tokens begin again
	}
	if token < q.newest[i] {
		w.Note("token went back: %v leads role %d with token %d after %d", p.l.Session(), role, token, q.newest[i])
	}
	if token <= q.ended[i] {
		w.Note("token led again: %v leads role %d with token %d, whose term had ended", p.l.Session(), role, token)
	}
	q.newest[i] = max(q.newest[i], token)
	if token >= int64(len(w.log)) || !w.log[token].won(p, role) {
		w.Note("no valid claim: %v leads role %d with token %d", p.l.Session(), role, token)
	}
}

// won reports whether e is a Claim by which p's session won role.
func (e *simEntry) won(p *simProc, role int32) bool {
	if e.r == nil || e.r.Kind != Claim || e.r.Session != p.l.Session() {
		return false
	}
	won := e.wonOld
	if p.newer != nil {
		won = e.wonOwn
	}
	for _, x := range won {
		if x == role {
			return true
		}
	}
	return false
}

// folds compares p's fold after offset o with the true one.
func (q *simOracle) folds(p *simProc, o int64) {
	if !p.l.Known() || p.l.Offset() != o || p.w.lossy {
		return
	}
	h := p.w.hist[o]
	if p.newer == nil && p.l.fold.hash != h.old || p.newer != nil && (p.l.fold.hash != h.own || p.newer.old.hash != h.old) {
		p.w.Note("folds differ at offset %d: %v has %s, the truth is %s", o, p.l.Session(), foldText(&p.l.fold), foldText(&p.w.truth.old))
	}
}

// truthful compares a Snapshot with the true fold at its read.
func (q *simOracle) truthful(p *simProc, states []*State, read int64, old bool) {
	w := p.w
	if w.lossy {
		return
	}
	want := w.hashAt(read, old)
	j := &join{}
	whole, ok := State{}, false
	for _, s := range states {
		whole, ok = j.snapshot(&Record{Session: p.l.Session(), Read: read, State: s})
	}
	f, sound := fold{}, false
	if ok {
		f, sound = whole.fold(longAgo)
	}
	if !sound || f.hash != want {
		w.Note("Snapshot lies: %v at read %d, whole %v, hash %x, the truth is %x", p.l.Session(), read, ok, f.hash, want)
	}
}

// hashAt returns the hash of the true fold at an offset.
func (w *simWorld) hashAt(o int64, old bool) uint64 {
	switch {
	case o < 0:
		return 0
	case old:
		return w.hist[o].old
	}
	return w.hist[o].own
}

// foldText describes a fold.
func foldText(f *fold) string {
	states := (&Lease{fold: *f}).states()
	if len(states) > 1 {
		return fmt.Sprintf("hash %x", f.hash)
	}
	s := *states[0]
	s.Hash, s.Newer, s.Parts = f.hash, f.newer, 1
	return stateText(&s)
}

// stepTrue folds an entry into the true folds.
func (f *newerFolds) stepTrue(w *simWorld, e *simEntry, o int64) {
	if e.r != nil && e.r.Kind == Claim {
		for _, role := range w.oracle.roles {
			h := f.old.holderOf(role)
			if h != nil && h.Session.Process != e.r.Session.Process && !e.newer && e.r.Read >= h.Last {
				for _, x := range e.r.Roles {
					if x == role {
						w.count.takeovers++
						if h.T != e.r.T {
							w.count.mixed++
						}
					}
				}
			}
		}
	}
	_, e.wonOld, e.wonOwn = f.step(e, o, longAgo)
	f.old.takeEnded()
	f.own.takeEnded()
	if e.r != nil && e.r.Kind == Claim && len(e.wonOld)+len(e.wonOwn) > 0 {
		w.count.claims++
		if e.r.Fresh {
			w.count.fresh++
		}
	}
}
