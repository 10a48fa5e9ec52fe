package nonexclusive

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// silence is what this process knows about one partition on which it receives nothing. There are
// three causes. The process is cut off: it must leave the group, so that another member leads. The
// log stands still for everybody: to leave gains nothing, and costs a rebalance. There is no other
// member: nobody leads in its place.
type silence struct {
	inFlight int           // records of this process that were handed to the client, and neither received nor refused
	others   clock.Instant // when a record of another process was last received, or when the partition was assigned
	wrote    clock.Instant // when a record of this process was last acknowledged
	resumed  clock.Instant // when the first one after a long pause was acknowledged
}

// assigned notes that the group has given this process the partition. Others count as present
// until their records fail to arrive.
func (s *silence) assigned(now clock.Instant) { s.inFlight, s.others = 0, now }

// read notes a record. Records do not name their sender: as many as this process has in flight
// count as its own.
func (s *silence) read(now clock.Instant) {
	if s.inFlight > 0 {
		s.inFlight--
	} else {
		s.others = now
	}
}

// unwritten reports whether no record of this process was acknowledged for the given time.
func (s *silence) unwritten(now clock.Instant, d time.Duration) bool {
	return now.Mono.Sub(s.wrote.Mono) >= d
}

// due returns when a process that last received a record at the given time leaves the group.
func (s *silence) due(heard clock.Instant, set *Settings) clock.Mono {
	after := set.StarvedAfter
	if heard.Mono.Sub(s.others.Mono) > set.GoneAfter { // nobody else would lead before V lapses
		after = max(after, set.T)
	}
	at := heard.Mono.Add(after)
	if s.resumed.Mono >= heard.Mono { // what was written will soon be read
		at = max(at, s.resumed.Mono.Add(set.StarvedAfter/2))
	}
	return at
}

// appending notes that a record for partition p is handed to the client.
func (a *Arbiter) appending(p int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.silence[p].inFlight++
}

// written notes the outcome of a record of this process. If this process left the group because p
// was silent, and could not write to p either, it comes back as soon as it can.
func (a *Arbiter) written(p int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, s := a.set.Now(), &a.silence[p]
	if err != nil {
		s.inFlight = max(0, s.inFlight-1)
		return
	}
	if s.unwritten(now, a.set.StarvedAfter/2) {
		s.resumed = now
	}
	s.wrote = now
	if a.stalled == p {
		a.stalled = none
		if a.away > now.Mono && !a.desired.Unhealthy {
			a.away = now.Mono
			a.wake()
		}
	}
}

// starved returns the partition that will be the first to be given up for lack of records, and
// when; none if there is no such partition. A process that is cut off from a partition's broker, but not from
// the group's coordinator, looks healthy to the group. It would stay assigned, and nobody would
// lead once V has lapsed.
func (a *Arbiter) starved() (partition int, at clock.Mono) {
	partition = none
	for p, has := range a.assigned {
		if has != assignedHere || a.leaving() {
			continue
		}
		if t := a.silence[p].due(a.heard[p], a.set); partition < 0 || t < at {
			partition, at = p, t
		}
	}
	return partition, at
}
