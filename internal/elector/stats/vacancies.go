package stats

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/lease"
)

// Vacancies counts the vacancies of a shard from what is known of the holders. Only roles below a number are wanted.
type Vacancies struct {
	spans
	gaps
	of       observe.Fold
	logs     observe.Reading
	t        time.Duration
	counters *Counters
}

func NewVacancies(of observe.Fold, logs observe.Reading, t time.Duration, counters *Counters) Vacancies {
	return Vacancies{of: of, logs: logs, t: t, counters: counters}
}

// End stops counting the roles that are vacant now.
func (v *Vacancies) End() { v.spans = spans{} }

// endedSpans counts spans that end now. Most roles are in the same one, and are counted together.
type endedSpans struct {
	v     *Vacancies
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

// count counts the roles of one span. Time without a leader was counted while it lasted. It adds the
// silence of a holder before its lease was over, and what has become known only since.
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

// FellSilent handles holders whose leases are over. Nobody knows that before the records that were
// in the log when reading began are read.
func (v *Vacancies) FellSilent(holders []lease.HolderState, below int32, now clock.Instant) {
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
// the holder's lease is over: the claimant has read the holder's last record a little earlier.
type overtaken struct {
	holder lease.Grantee
	roles  []int32
}

// Overtaking returns the roles that a record would overtake if it were a valid Claim.
func (v *Vacancies) Overtaking(r *lease.Record, below int32, now clock.Instant) map[lease.Session]*overtaken {
	if r == nil || r.Kind != lease.Claim || !v.logs.CaughtUp() {
		return nil
	}
	late := map[lease.Session]*overtaken{}
	for h := range v.of.Holders() {
		if now.Raw.Sub(h.Heard.Raw) > h.FreeAt.Sub(h.Heard.Raw)/2 && now.Raw < h.FreeAt.Add(Rest) { // else it was noticed
			late[h.Session] = &overtaken{}
		}
	}
	if len(late) == 0 {
		return nil
	}
	for _, local := range r.Roles {
		if g, held := v.of.Holder(local); held && local < below && late[g.Session] != nil && !v.IsVacant(local) {
			o := late[g.Session]
			o.holder, o.roles = g, append(o.roles, local)
		}
	}
	return late
}

// Overtook notes the silence of holders whose roles have another holder by now.
func (v *Vacancies) Overtook(late map[lease.Session]*overtaken, below int32, now clock.Instant) {
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

// Follow adapts to a new R.
func (v *Vacancies) Follow(below int32, now clock.Instant) {
	v.resize(int(below))
	v.Recount(below, now)
}

// Recount looks at all roles below R, because R, or everything that is known of a log, has changed.
// Nothing counts while the fold is unknown.
func (v *Vacancies) Recount(below int32, now clock.Instant) {
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

// RecountOf looks at roles that a record has changed, or whose holder was heard again.
func (v *Vacancies) RecountOf(roles []int32, below int32, again bool, now clock.Instant) {
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
	*Vacancies
	now    clock.Instant
	caught bool  // the logs are caught up
	number int32 // of the span of roles that are vacant from now on; 0: there are none yet
	over   endedSpans
}

func (v *Vacancies) begin(again bool, now clock.Instant) recounting {
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

// AddUp adds up for how long roles have been vacant.
func (v *Vacancies) AddUp(now clock.Instant) {
	unknown := v.stepped(v.logs.Deaf(v.read, now), v.t, now)
	v.account(v.of.NewerUntil(), unknown, v.counters, now)
}

// Heard notes that something was read.
func (v *Vacancies) Heard(now clock.Instant) { v.heard(v.logs.Read(), now) }

// SilentFor returns the longest time for which a role has had no sign of a leader: since the newest
// evidence of its holder, if two heartbeats are missing, or since its Release. It is 0 if all leaders
// were heard, and while this process should have read more, or reads the history.
func (v *Vacancies) SilentFor(beat time.Duration, now clock.Instant) time.Duration {
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

// missing is how old the newest evidence of a holder is when two heartbeats are missing. A holder's
// heartbeat interval is not known: it is taken for beat or a fifth of its lease, whichever is longer.
func missing(h lease.HolderState, beat time.Duration) time.Duration {
	return 2 * max(beat, h.FreeAt.Sub(h.Heard.Raw)/5)
}
