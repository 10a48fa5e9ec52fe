package neli_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli"
)

// The oracle of exclusive mode.

// unbroken reports whether the promise holds: nothing that it rests on is broken
// at present. It needs the lock. After a breach tokens start again.
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

// acquired asserts that a token is of one term of one process, and grows.
func (w *world) acquired(p *proc, t neli.Term) {
	if w.mode != neli.Exclusive {
		return
	}
	w.mu.Lock()
	procs := slices.Clone(w.procs)
	if w.unbroken() && !slices.Contains(w.buried, p) {
		of := term{t.Partition, t.Token}
		if q := w.owners[of]; q != nil {
			w.violatedLocked("token %d of partition %d is %s's and was %s's", t.Token, t.Partition, p.id, q.id)
		}
		w.owners[of] = p
		// Whoever was suspended on its way to the barrier leads no more.
		if slices.ContainsFunc(t.Roles, p.IsLeaderOf) {
			if last, ok := w.tokens[t.Partition]; ok && t.Token <= last {
				w.violatedLocked("token %d of partition %d after token %d", t.Token, t.Partition, last)
			}
			w.tokens[t.Partition] = t.Token
		}
	}
	former := w.led[t.Partition]
	w.led[t.Partition] = p
	w.mu.Unlock()
	if former != nil && former.clock.rate < 1 && p.clock.rate > 1 {
		w.seen.count("a fast clock follows a slow one")
	}
	for _, q := range procs {
		q.mu.Lock()
		_, had := q.told[t.Partition]
		suspended := q.stopped != nil
		q.mu.Unlock()
		if q != p && had && suspended {
			w.seen.count("succeeded while suspended")
		}
		if q != p && q.name == p.name && !q.leaving.Load() {
			w.seen.count("leads beside a living namesake")
		}
	}
}

// look asserts the promise for the roles of a partition at this instant.
func (w *world) look(partition int) {
	if w.mode != neli.Exclusive {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for role := partition; role < w.roles; role += w.partitions {
		var leader *proc
		for _, p := range w.procs {
			if !p.IsLeaderOf(role) {
				continue
			}
			if leader != nil && w.unbroken() {
				w.violatedLocked("role %d is led by %s and by %s", role, leader.id, p.id)
			}
			leader = p
			w.awake(p, role)
			w.well(p, role)
		}
	}
}

// awake asserts that whoever leads has been heard of: a hung application is to be
// replaced.
func (w *world) awake(p *proc, role int) {
	busy := time.Duration(p.busy.Load())
	if silent := p.read().mono - busy; busy > 0 && silent > simMaxPulse+w.timeout {
		w.violatedLocked("%s leads role %d and its application has hung for %v", p.id, role, silent)
	}
}

// leaderOf returns the process that leads a role now.
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

func (w *world) allLed() bool {
	for role := range w.roles {
		if w.leaderOf(role) == nil {
			return false
		}
	}
	return true
}

// referee folds a partition's log as somebody would who has read all of it.
type referee struct {
	known       bool
	token, last int64
	holder      *proc
}

const free = int64(-1)

func (f *referee) judge(o int64, r neli.WireRecord) (valid bool) {
	if !f.known && r.Read < o-1 {
		return false // somewhere in the middle; nobody knows
	}
	valid = r.Read >= f.last || r.Kind != "claim" && r.Token == f.token
	if !valid {
		return false
	}
	f.known, f.last = true, o
	switch r.Kind {
	case "claim":
		f.token = o
	case "beat":
		f.token = r.Token
	case "release":
		f.token = free
	}
	return true
}

// review reads the logs when all is over: every term that an application was told
// of must have begun with a claim that was valid, and of its own. It counts what
// happened on the way.
func (w *world) review() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken || w.mode != neli.Exclusive {
		return
	}
	claims := map[term]*proc{}
	since := map[int]int64{} // from which offset on the referee knows
	for partition := range w.partitions {
		records := w.broker.Records(simTopic, partition)
		f := referee{token: free, last: -1, known: len(records) > 0 && records[0].Offset == 0}
		if f.known {
			since[partition] = 0
		}
		seen := map[string]bool{}
		for _, r := range records {
			s := w.sent[string(r.Value)]
			if s == nil {
				continue
			}
			if seen[string(r.Value)] {
				w.seen.count("the same record twice: " + s.r.Kind)
			}
			seen[string(r.Value)] = true
			before := f
			valid := f.judge(r.Offset, s.r)
			if valid {
				f.holder = s.by
			}
			if f.known && !before.known {
				since[partition] = r.Offset
			}
			if s.r.Kind == "claim" {
				w.judged(s, before, valid)
				if valid {
					claims[term{partition, r.Offset}] = s.by
				}
			}
		}
	}
	for of, p := range w.owners {
		if from, ok := since[of.partition]; ok && of.token >= from && claims[of] != p {
			w.violatedLocked("%s led partition %d with token %d, which is not a valid claim of its own", p.id, of.partition, of.token)
		}
	}
	w.truthful(claims, since)
	for of, p := range w.testimony {
		if from, ok := since[of.partition]; ok && of.token >= from && claims[of] != p {
			w.violatedLocked("the witness said that %s held partition %d with token %d, which is not a valid claim of it", p.id, of.partition, of.token)
		}
	}
}

// judged counts what became of a claim.
func (w *world) judged(s *sending, before referee, valid bool) {
	late := !s.first.IsZero() && s.first.Sub(s.at) > w.timeout
	switch {
	case !before.known:
	case !valid && late:
		w.seen.count("claim invalid: delayed beyond T")
	case !valid:
		w.seen.count("claim invalid: race lost")
	case late:
		w.seen.count("claim valid: delayed beyond T")
	case before.holder == nil:
		w.seen.count("claim valid: the first")
	case before.token == free && before.holder != s.by:
		w.seen.count("claim valid: after another's release")
	case before.token == free:
		w.seen.count("claim valid: after an own release")
	case before.holder.name == s.by.name:
		w.seen.count("claim valid: after silence of a namesake or its own")
	default:
		w.seen.count("claim valid: after silence")
	}
	if valid && s.failed {
		w.seen.count("claim valid: reported as failed")
	}
}

// logs writes the logs as the referee sees them, runs of beats in one line.
func (w *world) logs() string {
	var b strings.Builder
	for partition := range w.partitions {
		f := referee{token: free, last: -1, known: true}
		fmt.Fprintf(&b, "partition %d:\n", partition)
		var beats int
		var beat *sending
		flush := func() {
			if beats > 0 {
				fmt.Fprintf(&b, "        %-6s %d valid beats, token %d, the last sent %.6f, read %d, seen %.6f\n", beat.by.id, beats,
					beat.r.Token, beat.at.Sub(w.began).Seconds(), beat.r.Read, beat.first.Sub(w.began).Seconds())
			}
			beats = 0
		}
		for _, r := range w.broker.Records(simTopic, partition) {
			s := w.sent[string(r.Value)]
			if s == nil {
				continue
			}
			valid := f.judge(r.Offset, s.r)
			if s.r.Kind == "beat" && valid && (beats == 0 || beat.by == s.by && beat.r.Token == s.r.Token) {
				beats, beat = beats+1, s
				continue
			}
			flush()
			verdict := map[bool]string{true: "valid", false: "INVALID"}[valid]
			fmt.Fprintf(&b, "%6d  %-6s %s %s, token %d, read %d, sent %.6f, seen %.6f, by %.6s\n", r.Offset, s.by.id, verdict, s.r.Kind,
				s.r.Token, s.r.Read, s.at.Sub(w.began).Seconds(), s.first.Sub(w.began).Seconds(), s.r.Member)
		}
		flush()
	}
	return b.String()
}
