package neli

import "time"

// reach watches whether a nominated process can claim at all. One that is cut off
// from a partition's broker, and not from the group's coordinator, is healthy as
// far as the group knows: it would stay nominated, unable to claim, and nobody
// would lead. It has to leave the group, so that another process is nominated,
// until something is read on that partition again.
type reach struct {
	after time.Duration   // how long claims may remain unheard of
	tried []time.Duration // by partition: monotonic time of the first claim since anything was read; 0: none
	probe time.Duration   // monotonic time of the next probe
}

// giveWayAfter outlasts the crash of a broker, which stalls a partition for about
// 13 s with stock settings and for everybody alike.
const giveWayAfter = 15 * time.Second

func newReach(m int, wait time.Duration) reach {
	return reach{after: max(giveWayAfter, 3*wait), tried: make([]time.Duration, m)}
}

// claimed notes a claim on p.
func (r *reach) claimed(p int, now instant) {
	if r.tried[p] == 0 {
		r.tried[p] = now.mono
	}
}

// read notes that something was read on p.
func (r *reach) read(p int) { r.tried[p] = 0 }

// lost returns the partitions that this process cannot reach.
func (r *reach) lost(now instant) []int {
	var out []int
	for p, at := range r.tried {
		if at != 0 && now.mono-at >= r.after {
			out = append(out, p)
		}
	}
	return out
}

// probes returns the partitions to be written to now, to see whether they can be
// reached again: with everybody waiting for a sign, somebody has to give one.
func (r *reach) probes(now instant) []int {
	lost := r.lost(now)
	if len(lost) == 0 || now.mono < r.probe {
		return nil
	}
	r.probe = now.mono + helloEvery
	return lost
}
