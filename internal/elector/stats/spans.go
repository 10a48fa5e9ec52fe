package stats

import "github.com/goneli/neli/internal/clock"

// span is a time without a leader that some roles have in common.
type span struct {
	silent clock.Raw // since when nothing shows a leader: the holder's newest evidence, or its Release
	over   clock.Raw // since when no process can lead
	live   float64   // spans.live when it began
	left   int       // roles that still have no leader
}

// spans is for how long roles of one shard have had no leader. It is for counters only
// and decides nothing. It costs a store for each role that becomes vacant or is won. Many roles may
// do so at once, so it uses neither timers nor maps.
type spans struct {
	in     []int32 // by role below R: the number of its span, from 1 on; 0: not vacant, or unknown
	list   []span
	unused []int32 // numbers of spans without roles
	count  int     // vacant roles

	at   clock.Raw // time is accounted for until then
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

// Vacant returns how many roles count as vacant.
func (v *spans) Vacant() int { return v.count }

// vacated notes that a role is vacant, unless it was before. Only roles below R count.
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

// occupied notes that a role has a holder. It returns the number of the role's span; 0 if the role was not vacant.
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

// IsVacant reports whether a role counts as vacant.
func (v *spans) IsVacant(local int32) bool { return int(local) < len(v.in) && v.in[local] != 0 }

// leave notes that some roles have left a span.
func (v *spans) leave(number int32, roles int) {
	v.list[number-1].left -= roles
	v.close(number)
}

// Free gives the memory back while no role is vacant.
func (v *spans) Free() {
	if v.count == 0 {
		v.in, v.list, v.unused = nil, nil, nil
	}
}

// resize adapts to a new R. Roles at or beyond R do not count as vacant.
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

// account adds the time for which roles have been vacant to c, unless it is unknown whether they were, or a
// newer version may hold them. Call it before anything is read, since what is vacant now was vacant until now.
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

// longest returns when the longest time without a leader that still lasts began; 0 if all roles have a leader.
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
