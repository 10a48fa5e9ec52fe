package quorum

import (
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// The methods here make records to append. now must have been read before the call.

// ballots sets the ballot of each record. In a Snapshot it is the largest that this process has
// seen or used, otherwise the process's own.
func (q *Lease) ballots(records ...lease.Record) []lease.Record {
	for i := range records {
		records[i].Ballot = q.bal
		if records[i].Kind == lease.Snapshot {
			records[i].Ballot = max(q.bal, q.seen)
		}
	}
	return records
}

// to adds records for a log to out.
func (q *Lease) to(out []Out, log int, records ...lease.Record) []Out {
	for _, r := range q.ballots(records...) {
		out = append(out, Out{log, r})
	}
	return out
}

// Word makes a Hello, Ping or Pong for a log. The fold does not depend on these.
func (q *Lease) Word(log int, k lease.Kind, now clock.Instant) lease.Record {
	return q.ballots(q.logs[log].lease.Word(k, now))[0]
}

// Snapshot makes the records of a Snapshot of a log. It returns none if the log's fold is not known.
func (q *Lease) Snapshot(log int, now clock.Instant) []lease.Record {
	return q.ballots(q.logs[log].lease.Snapshot(now)...)
}

// Beat makes a Beat for a log. It returns false if the session there has lapsed or holds nothing.
func (q *Lease) Beat(log int, now clock.Instant) (lease.Record, bool) {
	q.check(now)
	v := q.logs[log]
	r, ok := v.lease.Beat(now)
	if !ok {
		return r, false
	}
	v.sent(q.bal, now)
	return q.ballots(r)[0], true
}

// sent notes the ballot and the time of a Beat or Claim that was sent to the log.
func (v *logView) sent(ballot int64, now clock.Instant) { v.said, v.beatAt = ballot, now.Mono }

// claim makes Claims for each log, of those of the roles in its list (ascending) that may be claimed
// there. A log whose fold is not known may have lost its records, and with them the ballots of a
// former leader that no process remembers. So this process first raises its ballot above every
// ballot that any clock could have given before the wait began.
func (q *Lease) claim(lists [][]int32, now clock.Instant) []Out {
	q.check(now)
	fresh, any := false, false
	for log, roles := range lists {
		if len(roles) > 0 {
			any = true
			fresh = fresh || !q.logs[log].lease.Known()
		}
	}
	if !any {
		return nil
	}
	q.lift(q.seen + 1) // the Claim itself has the larger ballot, so no Beat has to follow it
	if fresh {
		q.lift(micros(now))
	}
	q.settle(now)
	var out []Out
	for log, roles := range lists {
		v := q.logs[log]
		known := v.lease.Known()
		for len(roles) > 0 {
			r, ok := v.lease.Claim(roles, now)
			if !ok {
				break
			}
			v.sent(q.bal, now)
			out = q.to(out, log, r)
			if !known {
				break // a second fresh Claim would undo the first
			}
			roles = after(roles, r.Roles[len(r.Roles)-1])
		}
	}
	return out
}

// after returns the roles above the given one.
func after(roles []int32, role int32) []int32 {
	i, found := slices.BinarySearch(roles, role)
	if found {
		i++
	}
	return roles[i:]
}

// micros returns the wall clock in microseconds.
func micros(now clock.Instant) int64 { return int64(now.Wall) / 1000 }

// Forget ends the leadership of roles: from now on Leads is false. The application must have
// stopped its work, or be overdue. Call Release afterwards to tell the others.
func (q *Lease) Forget(roles []int32) {
	for log := range q.logs {
		q.ForgetOn(log, roles)
	}
}

// ForgetOn gives up roles on one log. Their terms go on if a majority of the logs still sustains them.
func (q *Lease) ForgetOn(log int, roles []int32) {
	q.logs[log].lease.Forget(roles)
	for _, role := range roles {
		if u := q.unit(role); u != nil && u.mine.has(log) {
			q.drop(log, role)
			q.look(role)
		}
	}
}

// Release makes the Releases of those of the given roles that were forgotten but are still held in the folds.
func (q *Lease) Release(roles []int32, now clock.Instant) []Out {
	var out []Out
	for log := range q.logs {
		out = q.to(out, log, q.ReleaseOn(log, roles, now)...)
	}
	return out
}

// ReleaseOn is Release for one log.
func (q *Lease) ReleaseOn(log int, roles []int32, now clock.Instant) []lease.Record {
	return q.ballots(q.logs[log].lease.Release(roles, now)...)
}

// Lapse ends the sessions that have lapsed, and makes the Releases of their roles on their logs.
func (q *Lease) Lapse(now clock.Instant) []Out {
	q.check(now)
	var out []Out
	for log, v := range q.logs {
		if !v.lease.Lapsed(now) {
			continue
		}
		records := v.lease.Lapse(now)
		q.renewed(log)
		out = q.to(out, log, records...)
	}
	return out
}

// UnreleasedOn makes again the Releases on one log that have not come back, including those of former
// sessions, since any of them may be lost. The caller decides when.
func (q *Lease) UnreleasedOn(log int, now clock.Instant) []lease.Record {
	return q.ballots(q.logs[log].lease.Unreleased(now)...)
}

// Failed notes that the append of a record to a log was not confirmed. The record may still be in the log.
func (q *Lease) Failed(log int, r *lease.Record, now clock.Instant) {
	q.logs[log].lease.Failed(r.Session, r.Seq)
	if r.Kind != lease.Claim {
		return
	}
	q.pause(log, now)
	for _, role := range r.Roles {
		q.look(role)
	}
}

// GiveUpClaims forgets the Claims on a log that were sent until a time: they, or the reports on them,
// are probably lost. If there are any and the session holds nothing, a new session replaces it.
func (q *Lease) GiveUpClaims(log int, sent, now clock.Instant) {
	v := q.logs[log]
	n, _ := v.lease.Claiming()
	was := v.lease.Session()
	v.lease.GiveUpClaims(sent)
	if v.lease.Session() != was {
		q.renewed(log)
	}
	if left, _ := v.lease.Claiming(); left < n {
		q.pause(log, now)
		q.policy.lookAll = true
	}
}
