package sim

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/history"
)

// unbroken reports whether all assumptions of the promise hold at present. After a breach tokens
// start again. It needs the lock.
func (w *world) unbroken() bool {
	if w.breach.IsZero() {
		return true
	}
	if time.Now().Before(w.breach) {
		return false
	}
	w.breach = time.Time{}
	clear(w.tokens)
	clear(w.owners)
	return true
}

func logOf(value []byte) string {
	var of struct{ Log string }
	_ = json.Unmarshal(value, &of)
	return of.Log
}

// lookedOn returns the watched roles of a partition.
func (w *world) lookedOn(partition int) []int {
	var roles []int
	for _, role := range w.looked {
		if role%w.partitions == partition {
			roles = append(roles, role)
		}
	}
	return roles
}

// acquired asserts that a token belongs to one term of one process, that the log confirms it, and
// that tokens increase.
func (w *world) acquired(p *proc, t neli.Term) {
	w.mu.Lock()
	procs := slices.Clone(w.procs)
	former := map[*proc]bool{}
	if w.unbroken() && !slices.Contains(w.buried, p) {
		for _, role := range t.Roles {
			w.begins(p, role, t)
		}
	}
	for _, role := range t.Roles {
		if q := w.led[role]; q != nil {
			former[q] = true
		}
		w.led[role] = p
	}
	w.terms++
	w.mu.Unlock()
	seen := w.opts.Seen
	for q := range former {
		q.mu.Lock()
		died := q.died
		q.mu.Unlock()
		w.posts.succeeded(died, q.t)
		if q.clock.rate() < 1 && p.clock.rate() > 1 {
			seen.Count("a fast clock follows a slow one")
		}
		if q != p && q.t != p.t {
			seen.Count("a member with another T follows")
		}
		switch before, after := q.far != (distance{}), p.far != (distance{}); {
		case after && !before:
			seen.Count("a far member follows a near one")
		case before && !after:
			seen.Count("a near member follows a far one")
		}
	}
	if len(t.Roles) > 1 {
		seen.Count("several roles by one claim")
	}
	for _, q := range procs {
		if q == p {
			continue
		}
		if q.asleep.Load() && slices.ContainsFunc(t.Roles, func(role int) bool { return former[q] && q.app.has(role) }) {
			seen.Count("succeeded while suspended")
		}
		if q.name == p.name && !q.leaving.Load() {
			seen.Count("leads beside a living namesake")
		}
	}
}

// begins checks that a process may begin to lead a role. It needs the lock.
func (w *world) begins(p *proc, role int, t neli.Term) {
	of := term{role, t.Token}
	if role%w.partitions != t.Partition {
		w.violated("role %d is reported as one of partition %d", role, t.Partition)
	}
	if q := w.owners[of]; q != nil {
		w.violated("token %d of role %d is %s's and was %s's", t.Token, role, p.id, q.id)
	}
	w.owners[of] = p
	if !w.broken && !w.truths[t.Partition].won(int32(role/w.partitions), t.Token, p.self) {
		w.violated("%s leads role %d with token %d, which is not a valid claim of its own", p.id, role, t.Token)
	}
	// A process that was suspended on its way to the barrier no longer leads.
	if w.profile != paused && p.IsLeaderOf(role) {
		if last, ok := w.tokens[role]; ok && t.Token <= last {
			w.violated("role %d is led with token %d after token %d", role, t.Token, last)
		}
		w.tokens[role] = t.Token
	}
}

// look asserts the promise for some roles at this instant.
func (w *world) look(roles []int) {
	w.mu.Lock()
	procs, sound := slices.Clone(w.procs), w.unbroken()
	w.mu.Unlock()
	for _, role := range roles {
		var leader *proc
		for _, p := range procs {
			if !p.IsLeaderOf(role) {
				continue
			}
			switch {
			case leader == nil || !sound || p.crashed.Load() || leader.crashed.Load():
			case w.profile == paused:
				w.opts.Seen.Count("two leaders, told apart by their tokens")
				a, aOK := leader.Token(role)
				b, bOK := p.Token(role)
				if aOK && bOK && a == b {
					w.violated("role %d is led by %s and by %s, both with token %d", role, leader.id, p.id, a)
				}
			default:
				w.violated("role %d is led by %s and by %s", role, leader.id, p.id)
			}
			leader = p
			w.awake(p, role)
			w.well(p, role)
		}
	}
}

// awake asserts that a leader's task is not hung: such a leader must be replaced. A barrier may take as long as it needs.
func (w *world) awake(p *proc, role int) {
	if silent := p.hungFor(); silent > simMaxPulse+p.t {
		w.violated("%s leads role %d and its application has hung for %v", p.id, role, silent)
	}
}

// leaderOf returns the process that leads a role now, or nil.
func (w *world) leaderOf(role int) *proc {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.procs {
		if p.IsLeaderOf(role) {
			return p
		}
	}
	return nil
}

// holds asserts that a reported holder of a role is the holder in the true fold, at the offset
// that the process has read.
func (w *world) holds(who string, role int, offset, token int64, process string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return
	}
	w.opts.Seen.Count("told who holds a role")
	f := w.truths[role%w.partitions]
	h, held := f.at(int32(role/w.partitions), offset)
	if !held || h.token != token || h.by.process != process {
		w.violated("folds differ: at offset %d of partition %d %s takes %s for the holder of role %d with token %d, and that is %s with token %d (%v)",
			offset, f.index, who, w.called[process], role, token, w.called[h.by.process], h.token, held)
	}
}

// sample asserts the promise again and again.
func (w *world) sample(stop chan struct{}) {
	// Chosen so that it hardly ever coincides with other timers.
	const period = 41*time.Millisecond + 7*time.Microsecond
	for {
		select {
		case <-stop:
			return
		case <-time.After(period):
		}
		w.look(w.looked)
		w.hear(period)
		for _, p := range w.living() {
			if p.asleep.Load() {
				p.clock.checked.Store(0)
			} else {
				w.rests(p.id, p.clock)
				p.over()
				p.standings()
			}
		}
	}
}

// rests asserts that no process is in a busy loop. A suspended machine does not matter here,
// since its process goes on in the simulation.
func (w *world) rests(who string, m *machine) {
	const most = 5_000
	since := time.Duration(m.checked.Load())
	if now := time.Since(w.began); now-since >= time.Second {
		m.checked.Store(int64(now))
		if n := m.reads.Swap(0); n > most && since > 0 {
			w.violated("%s has looked at its clock %d times in %v", who, n, now-since)
		}
	}
}

// over asserts that IsLeader is false once the application was told of the end and has ended its work.
func (p *proc) over() {
	for _, role := range p.w.looked {
		token, leads := p.Token(role)
		if !leads || p.app.has(role) {
			continue
		}
		time.Sleep(time.Microsecond) // let everything due at this very instant happen
		if again, still := p.Token(role); still && again == token && !p.app.has(role) && !p.asleep.Load() && !p.crashed.Load() {
			p.w.violated("%s leads role %d with token %d, and its application has not been told, or has been told of its end", p.id, role, token)
		}
	}
}

// standings asserts that what Watch has reported is true.
func (p *proc) standings() {
	w := p.w
	p.mu.Lock()
	woken := time.Since(p.woken) < time.Millisecond
	p.mu.Unlock()
	if woken || p.State() != neli.StateLive {
		return
	}
	now := p.clock.Now()
	for _, role := range w.looked {
		if role >= p.r() {
			continue
		}
		partition, u := role%w.partitions, int32(role/w.partitions)
		p.reading.mu.Lock()
		s, told := p.reading.told[role]
		folded := p.reading.folded[partition]
		p.reading.mu.Unlock()
		switch {
		case !told:
		case s.status == neli.StatusHeld:
			w.holds(p.id+"'s Watch", role, folded, s.token, s.by)
		case s.status == neli.StatusVacant:
			w.mu.Lock()
			h, held := w.truths[partition].at(u, folded)
			broken := w.broken
			w.mu.Unlock()
			if !held || broken {
				continue
			}
			p.reading.mu.Lock()
			heard, ok := p.reading.heard[onLog{partition, h.by}]
			p.reading.mu.Unlock()
			w.mu.Lock()
			t := w.truths[partition].entries[h.token].r.T
			w.mu.Unlock()
			if silent := now.Raw.Sub(heard.Raw); ok && silent < t-time.Millisecond {
				w.violated("%s's Watch says that role %d is vacant, and it has heard its holder %s, of T %v, %v ago", p.id, role,
					w.called[h.by.process], t, silent)
			}
		}
	}
}

// judge counts the effects of a record. It needs the lock.
func (w *world) judge(partition int, e *truthEntry) {
	w.opts.tracer.appended(e)
	seen := w.opts.Seen
	s := w.sent[placed{partition, e.value}]
	if e.newer {
		seen.Count("record of a newer version")
	}
	if e.r != nil && s == nil && e.r.Kind == "release" {
		w.buriedAlive(e.r.Process)
	}
	if e.r == nil || s == nil {
		return
	}
	if s.times++; s.times > 1 {
		seen.Count("the same record twice: " + e.r.Kind)
	}
	if e.r.Kind != "claim" {
		return
	}
	if s.by.crashed.Load() && len(e.won) > 0 {
		seen.Count("sentinel: a Claim of the dead became valid")
	}
	late, valid := time.Since(s.at) > s.by.t, len(e.won) > 0
	switch {
	case !valid && late:
		seen.Count("claim invalid: delayed beyond T")
	case !valid:
		seen.Count("claim invalid: race lost")
	case late:
		seen.Count("claim valid: delayed beyond T")
	case e.r.Fresh:
		seen.Count("claim valid: fresh")
	case e.before.foreign > 0:
		seen.Count("claim valid: after silence")
	case e.before.own > 0:
		seen.Count("claim valid: after own silence")
	default:
		seen.Count("claim valid: of what was free")
	}
	if valid && e.before.otherT {
		seen.Count("claim valid: after silence of a holder with another T")
	}
	if valid && len(e.won) < len(e.r.roles) {
		seen.Count("claim valid: in part")
	}
	if valid && s.failed {
		seen.Count("claim valid: reported as failed")
	}
}

// truthful asserts that every successful Transfer took place: the addressee won the role after
// the term that was given up.
func (w *world) truthful() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return
	}
	for _, m := range w.moves {
		led := false
		for _, turn := range w.truths[m.role%w.partitions].history[int32(m.role/w.partitions)] {
			led = led || turn.token > m.after && turn.by.process == m.to.self
		}
		if !led {
			w.violated("%s said that %s leads role %d after token %d, and it does not", m.from.id, m.to.id, m.role, m.after)
		}
	}
}

// proveLogs asserts that neli history finds no fault in the logs.
func (w *world) proveLogs() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return
	}
	var entries []history.Entry
	for _, f := range w.truths {
		for _, r := range w.broker.Records(simTopic, f.index) {
			entries = append(entries, history.Entry{Partition: f.index, Offset: r.Offset, Time: r.Time, Value: r.Value})
		}
	}
	told, err := history.Of(simGroup, w.logID, w.partitions, entries)
	if err != nil {
		w.violated("the history: %v", err)
	}
	for _, fault := range told.Faults {
		w.violated("the history: %v", fault)
	}
}
