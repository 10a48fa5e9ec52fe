package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/lease"
)

// span is a time without a leader that some roles have in common.
type span struct {
	silent clock.Raw // since when nothing shows a leader: its newest evidence, or its Release
	over   clock.Raw // since when no process can lead
	live   float64   // of spans, when it began
	left   int       // roles that still have none
}

// spans is for how long roles of one partition have had no leader. It is for counters only
// and decides nothing. It costs a store for each role that becomes vacant or is won. Many roles may
// do so at once, so it uses neither timers nor maps.
type spans struct {
	in     []int32 // by role below R: the number of its span, from 1 on; 0: not vacant, or unknown
	list   []span
	unused []int32 // numbers of spans without roles
	count  int     // vacant roles

	at   clock.Raw // accounted for until then
	live float64   // seconds accounted for so far
}

// open returns the number of a new span.
func (v *spans) open(silent, over clock.Raw) (number int32) {
	s := span{silent: silent, over: over, live: v.live}
	if n := len(v.unused); n > 0 {
		number = v.unused[n-1]
		v.unused = v.unused[:n-1]
		v.list[number-1] = s
		return number
	}
	v.list = append(v.list, s)
	return int32(len(v.list))
}

// close gives the number of a span back if no role is in it.
func (v *spans) close(number int32) {
	if v.list[number-1].left == 0 {
		v.unused = append(v.unused, number)
	}
}

// vacated notes that a role is vacant, unless it was before. Roles beyond R do not count.
func (v *spans) vacated(local, below, number int32) {
	if local >= below {
		return
	}
	if len(v.in) == 0 {
		v.in = make([]int32, below)
	}
	if v.in[local] == 0 {
		v.in[local] = number
		v.list[number-1].left++
		v.count++
	}
}

// occupied notes that a role has a holder. It returns the number of the span that ends; 0 if the
// role was not vacant.
func (v *spans) occupied(local int32) (number int32) {
	if v.count == 0 || int(local) >= len(v.in) {
		return 0
	}
	if number = v.in[local]; number != 0 {
		v.in[local] = 0
		v.count--
	}
	return number
}

// isVacant reports whether a role counts as vacant.
func (v *spans) isVacant(local int32) bool { return int(local) < len(v.in) && v.in[local] != 0 }

// leave notes that some roles have left a span.
func (v *spans) leave(number int32, roles int) {
	v.list[number-1].left -= roles
	v.close(number)
}

// free gives the memory back while no role is vacant.
func (v *spans) free() {
	if v.count == 0 {
		v.in, v.list, v.unused = nil, nil, nil
	}
}

// resize follows R. Roles at or beyond R do not count as vacant.
func (v *spans) resize(below int) {
	for _, number := range v.in[min(below, len(v.in)):] {
		if number != 0 {
			v.count--
			v.leave(number, 1)
		}
	}
	if len(v.in) > 0 {
		v.in = append(v.in[:min(below, len(v.in))], make([]int32, max(0, below-len(v.in)))...)
	}
}

// account adds the time for which roles have been vacant to c, unless it is unknown whether they were. Time in which a member of a newer version may hold the vacant roles
// does not count. Call it before anything is read, since what is vacant now was vacant until now.
func (v *spans) account(newerUntil clock.Raw, unknown bool, c *Counters, now clock.Instant) {
	if v.count > 0 && !unknown {
		if from := max(v.at, newerUntil); now.Raw > from {
			d := now.Raw.Sub(from).Seconds()
			v.live += d
			c.Leaderless += d * float64(v.count)
		}
	}
	v.at = now.Raw
}

// longest returns since when the role has had no leader that has had none for longest; 0 if all
// have one.
func (v *spans) longest() (since clock.Raw) {
	if v.count == 0 {
		return 0
	}
	for _, s := range v.list {
		if s.left > 0 && (since == 0 || s.silent < since) {
			since = s.silent
		}
	}
	return since
}

// vacancyStats counts the vacancies of a shard from what is known of the holders. Only roles below
// a number are wanted.
type vacancyStats struct {
	spans
	gaps
	of       observe.Fold
	logs     observe.Reading
	t        time.Duration
	counters *Counters
}

func newVacancyStats(of observe.Fold, logs observe.Reading, t time.Duration, counters *Counters) vacancyStats {
	return vacancyStats{of: of, logs: logs, t: t, counters: counters}
}

// end ends the counting of what is vacant now.
func (v *vacancyStats) end() { v.spans = spans{} }

// endedSpans counts spans that end now. Most roles are in the same one, and are counted together.
type endedSpans struct {
	v     *vacancyStats
	now   clock.Instant
	again bool // the former holders go on: they were not silent
	last  int32
	n     int
}

func (e *endedSpans) add(number int32) {
	if number != e.last {
		e.count()
		e.last = number
	}
	e.n++
}

// count counts the roles of one span. Time without a leader was counted while it lasted; what was
// not is the silence of a holder before its lease was over, and what became known only since.
func (e *endedSpans) count() {
	if e.n == 0 {
		return
	}
	v, s := e.v, e.v.list[e.last-1]
	newer := v.of.NewerUntil()
	d := v.vacancy(max(s.over, newer), e.now.Raw)
	if !e.again {
		d += v.silence(max(s.silent, newer), s.over)
	}
	v.counters.Vacancies.Add(d, e.n)
	v.counters.Leaderless += max(0, d.Seconds()-(v.live-s.live)) * float64(e.n)
	v.leave(e.last, e.n)
	e.n = 0
}

// fellSilent handles that the leases of some holders are over. That is not known before the records
// that were in the log when reading began are read.
func (v *vacancyStats) fellSilent(holders []lease.HolderState, below int32, now clock.Instant) {
	if !v.logs.CaughtUp() {
		return
	}
	numbers := map[lease.Session]int32{}
	for _, h := range holders {
		numbers[h.Session] = v.open(h.Heard.Raw, min(h.FreeAt, now.Raw))
	}
	v.of.Each(func(h lease.HolderState) int32 { return numbers[h.Session] }, func(local, number int32) {
		if number != 0 {
			v.vacated(local, below, number)
		}
	})
	for _, number := range numbers {
		v.close(number)
	}
}

// overtaken is some roles of a holder that another process claims before this one has noticed that
// its lease is over: the other one has read its last record a little earlier.
type overtaken struct {
	holder lease.Grantee
	roles  []int32
}

// overtaking returns what a record would overtake if it were a valid Claim.
func (v *vacancyStats) overtaking(r *lease.Record, below int32, now clock.Instant) map[lease.Session]*overtaken {
	if r == nil || r.Kind != lease.Claim || !v.logs.CaughtUp() {
		return nil
	}
	late := map[lease.Session]*overtaken{}
	for h := range v.of.Holders() {
		if now.Raw.Sub(h.Heard.Raw) > h.FreeAt.Sub(h.Heard.Raw)/2 && now.Raw < h.FreeAt.Add(rest) { // else it was noticed
			late[h.Session] = &overtaken{}
		}
	}
	if len(late) == 0 {
		return nil
	}
	for _, local := range r.Roles {
		if g, held := v.of.Holder(local); held && local < below && late[g.Session] != nil && !v.isVacant(local) {
			o := late[g.Session]
			o.holder, o.roles = g, append(o.roles, local)
		}
	}
	return late
}

// overtook notes the silence of holders whose roles have another holder by now.
func (v *vacancyStats) overtook(late map[lease.Session]*overtaken, below int32, now clock.Instant) {
	for _, o := range late {
		number := v.open(o.holder.Heard.Raw, min(o.holder.FreeAt, now.Raw))
		for _, local := range o.roles {
			if g, held := v.of.Holder(local); held && g.Session != o.holder.Session {
				v.vacated(local, below, number)
			}
		}
		v.close(number)
	}
}

// follow follows R.
func (v *vacancyStats) follow(below int32, now clock.Instant) {
	v.resize(int(below))
	v.recount(below, now)
}

// recount looks at all roles, because a log has become known or is read again. Nothing counts
// while the fold is unknown.
func (v *vacancyStats) recount(below int32, now clock.Instant) {
	if !v.of.Known() {
		v.spans = spans{at: now.Raw}
		return
	}
	c := v.begin(true, now)
	for local := range below {
		c.look(local, below)
	}
	c.end()
}

// recountOf looks at roles that a record has changed, or whose holder was heard again.
func (v *vacancyStats) recountOf(roles []int32, below int32, again bool, now clock.Instant) {
	if !v.of.Known() {
		return
	}
	c := v.begin(again, now)
	for _, local := range roles {
		c.look(local, below)
	}
	c.end()
}

// recounting is a look at many roles at one instant.
type recounting struct {
	*vacancyStats
	now    clock.Instant
	caught bool  // as in fellSilent
	number int32 // of the span of roles that are vacant from now on; 0: there are none yet
	over   endedSpans
}

func (v *vacancyStats) begin(again bool, now clock.Instant) recounting {
	return recounting{v, now, v.logs.CaughtUp(), 0, endedSpans{v: v, now: now, again: again}}
}

// look counts a role as vacant from now on, or its vacancy as ended.
func (c *recounting) look(local, below int32) {
	switch held := c.of.Held(local, c.now); {
	case held:
		if number := c.occupied(local); number != 0 {
			c.over.add(number)
		}
	case c.caught:
		if c.number == 0 {
			c.number = c.open(c.now.Raw, c.now.Raw)
		}
		c.vacated(local, below, c.number)
	}
}

func (c *recounting) end() {
	c.over.count()
	if c.number != 0 {
		c.close(c.number)
	}
}

// addUp adds up for how long roles have been vacant.
func (v *vacancyStats) addUp(now clock.Instant) {
	unknown := v.stepped(v.logs.Deaf(v.read, now), v.t, now)
	v.account(v.of.NewerUntil(), unknown, v.counters, now)
}

// heardLog notes that something was read.
func (v *vacancyStats) heardLog(now clock.Instant) { v.heard(v.logs.Read(), now) }

// silentFor returns for how long the role that has had no sign of a leader for longest has had
// none: since the newest evidence of its holder, if two heartbeats are missing, or since its Release.
// It is 0 if all leaders were heard, or if this process itself reads nothing.
func (v *vacancyStats) silentFor(beat time.Duration, now clock.Instant) time.Duration {
	if v.blind || !v.logs.CaughtUp() {
		return 0
	}
	since := v.longest()
	for h := range v.of.Holders() {
		if now.Raw < h.FreeAt && now.Raw.Sub(h.Heard.Raw) > missing(h, beat) && !v.logs.Old(h.Last) && (since == 0 || h.Heard.Raw < since) {
			since = h.Heard.Raw
		}
	}
	if since == 0 {
		return 0
	}
	return max(0, now.Raw.Sub(since))
}

// missing is how old the newest evidence of a holder is when two heartbeats are missing. Its
// heartbeat is not known; it is T/5 of its T, unless it is set.
func missing(h lease.HolderState, beat time.Duration) time.Duration {
	return 2 * max(beat, h.FreeAt.Sub(h.Heard.Raw)/5)
}
