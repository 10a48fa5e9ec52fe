package quorum

import (
	"fmt"
	"strings"

	"github.com/goneli/neli/internal/lease"
)

// simOracle sees every process's clocks and all logs. It reports what must never happen:
//
//   - two leaders of one role at one true instant
//   - two processes that lead a role on one log, even in different incarnations of it
//   - a token led after a larger one, or the same token in two terms
//   - a token led again after its term ended
//   - two Snapshots of one incarnation that differ at the same offset
//   - an alarm, since these logs keep their promises
//   - a published bound that is young by all clocks, for a role that is not led
type simOracle struct {
	newest []int64 // by role: the largest token led
	ended  []int64 // by role: the largest token led and then lost
	last   []int   // by role: the process that led last
	folds  map[string]uint64
}

func (o *simOracle) watch(w *simWorld) {
	o.newest, o.ended, o.last = make([]int64, w.pr.roles), make([]int64, w.pr.roles), make([]int, w.pr.roles)
	o.folds = map[string]uint64{}
	for role := range o.last {
		o.last[role] = -1
	}
}

// look compares what p leads now with what everybody leads. It is called before and after
// everything that a process does, since nobody begins to lead in between.
func (o *simOracle) look(p *simProc) {
	w := p.w
	for role := range int32(w.pr.roles) {
		token, leads := int64(0), false
		if p.alive {
			token, leads = p.q.Leads(role, p.now())
		}
		if !leads {
			token = 0
		}
		was := p.led[role]
		if was != 0 && token == 0 && p.alive && p.want[role] {
			w.count.taken[p.i]++
		}
		if was != 0 && was != token {
			o.ended[role] = max(o.ended[role], was)
		}
		p.led[role] = token
		if p.alive {
			o.bound(p, role, leads)
		}
		if leads {
			o.leader(p, role, token, was != token)
		}
		if p.alive {
			o.holders(p, role)
		}
	}
}

// leader checks that p may lead a role.
func (o *simOracle) leader(p *simProc, role int32, token int64, begun bool) {
	w := p.w
	for _, other := range w.procs {
		if other != p && other.alive {
			if theirs, too := other.q.Leads(role, other.now()); too {
				w.wrong("two leaders of role %d: %s with token %d and %s with token %d", role, p, token, other, theirs)
			}
		}
	}
	switch {
	case token <= o.ended[role] && token == o.newest[role] && o.last[role] == p.i:
		w.wrong("token led again: %s leads role %d with token %d, whose term had ended", p, role, token)
	case token < o.newest[role] || begun && token <= o.newest[role]:
		w.wrong("token went back: %s leads role %d with token %d after %d", p, role, token, o.newest[role])
	}
	if begun {
		w.count.terms++
		if o.last[role] >= 0 && o.last[role] != p.i {
			w.count.takeovers++
		}
		w.Trace("%s LEADS role %d with token %d", p, role, token)
	}
	o.newest[role], o.last[role] = max(o.newest[role], token), p.i
}

// bound checks the value that is published for a term: the majority-th largest V of the logs that
// sustain it. A reader of that value alone must see leadership only where there is some.
func (o *simOracle) bound(p *simProc, role int32, leads bool) {
	token, line, term := p.q.Term(role)
	if young := term && lease.Young(p.now(), p.q.V(line), simT); young && !leads {
		p.w.Note("led by its bound alone: %s, role %d, token %d", p, role, token)
	}
}

// holders checks what single logs say.
func (o *simOracle) holders(p *simProc, role int32) {
	for log := range p.w.logs {
		if _, leads := p.q.Log(log).Leads(role, p.now()); !leads {
			continue
		}
		for _, other := range p.w.procs {
			if other == p || !other.alive {
				continue
			}
			if _, too := other.q.Log(log).Leads(role, other.now()); too {
				p.w.wrong("two holders of role %d on log %d: %s and %s", role, log, p, other)
			}
		}
	}
}

// snapshot checks a Snapshot of an incarnation.
func (o *simOracle) snapshot(w *simWorld, id string, r *lease.Record) {
	if key := fmt.Sprintf("%s at %d", id, r.Read); !o.agrees(key, r.State.Hash) {
		w.Note("folds differ: Snapshots of log %s", key)
	}
}

// agrees reports whether all Snapshots at that place are of the same fold.
func (o *simOracle) agrees(key string, hash uint64) bool {
	was, ok := o.folds[key]
	o.folds[key] = hash
	return !ok || was == hash
}

// wrong reports what must never happen. After a misread record it only counts it.
func (w *simWorld) wrong(format string, args ...any) {
	if !w.pr.misread {
		w.Note(format, args...)
		return
	}
	what, _, _ := strings.Cut(format, ":")
	what, _, _ = strings.Cut(what, " of")
	w.count.wrong[what]++
	w.Trace("WRONG: "+format, args...)
}
