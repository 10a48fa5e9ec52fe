package integration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The omniscient check: from what all members saw of their own leadership, by one
// clock, to what must not have been. Pure functions; oracle_self_test.go feeds
// them forged samples that they must reject.
//
// A sample is three things in this order: the clock read, the question asked, the
// clock read again. The answer was true at one instant between the two readings,
// which one is not known. So an answer proves little, and two answers prove more:
// a term is one uninterrupted time of leading, so between two true samples of the
// same term it was led throughout. A term is therefore proven from the second
// reading of its first true sample to the first reading of its last.

// window is where one sample lies: between two readings of the monotonic clock.
type window struct{ before, after time.Duration }

// span is a closed interval of the monotonic clock; empty if to < from.
type span struct{ from, to time.Duration }

func (s span) length() time.Duration { return max(0, s.to-s.from) }

func (s span) String() string {
	return fmt.Sprintf("[%.6f, %.6f] (%v)", s.from.Seconds(), s.to.Seconds(), s.length().Round(10*time.Microsecond))
}

// Answers that are no token.
const (
	answerNo      = int64(-2) // does not lead
	answerNoToken = int64(-1) // leads, in non-exclusive mode
)

// run is what a member saw of one role for as long as the answer stayed the same.
type run struct {
	contender   int
	role        int
	answer      int64
	first, last window
	samples     int64
	gap         time.Duration // the longest time between two samples
}

func (r run) proven() span { return span{r.first.after, r.last.before} }

// term is one member's leadership of one role under one token.
type term struct {
	member      string
	token       int64
	first, last window
}

func (t term) proven() span { return span{t.first.after, t.last.before} }

func (t term) String() string {
	return fmt.Sprintf("%s token %d %v", t.member, t.token, t.proven())
}

// termsOf joins a member's runs of one role that have the same token: a gap in
// sampling, or even a false answer in between, does not make it two terms.
func termsOf(member string, runs []run) []term {
	byToken := map[int64]*term{}
	var order []int64
	for _, r := range runs {
		if r.answer < 0 {
			continue
		}
		t := byToken[r.answer]
		if t == nil {
			t = &term{member: member, token: r.answer, first: r.first, last: r.last}
			byToken[r.answer] = t
			order = append(order, r.answer)
		}
		if r.first.before < t.first.before {
			t.first = r.first
		}
		if r.last.after > t.last.after {
			t.last = r.last
		}
	}
	out := make([]term, len(order))
	for i, token := range order {
		out[i] = *byToken[token]
	}
	return out
}

// exclusiveFaults names everything in the terms of one role that exclusive mode
// rules out: two leaders at one instant, one token of two members, tokens that do
// not increase.
func exclusiveFaults(terms []term) []string {
	var faults []string
	report := func(what string, a, b term) {
		faults = append(faults, fmt.Sprintf("%s: %v and %v", what, a, b))
	}
	for i, a := range terms {
		for _, b := range terms[i+1:] {
			if a.first.before > b.first.before {
				a, b = b, a
			}
			switch {
			case a.token == b.token && a.member != b.member:
				report("one token, two members", a, b)
			case a.last.after < b.first.before && a.token >= b.token:
				report("the later term has no greater token", a, b)
			}
			if a.member != b.member && together(a, b) {
				report("two leaders at one instant", a, b)
			}
		}
	}
	return faults
}

// together reports whether there is an instant at which both certainly led:
// proven times that meet, or a sample of one that lies within the proven time of
// the other, wherever in its window it was taken.
func together(a, b term) bool {
	if a.proven().meets(b.proven()) {
		return true
	}
	for _, pair := range [][2]term{{a, b}, {b, a}} {
		for _, w := range []window{pair[0].first, pair[0].last} {
			if pair[1].proven().contains(w) {
				return true
			}
		}
	}
	return false
}

func (s span) meets(o span) bool {
	return s.from <= s.to && o.from <= o.to && max(s.from, o.from) <= min(s.to, o.to)
}

func (s span) contains(w window) bool { return s.from <= w.before && w.after <= s.to }

// vacancies returns the times between the leaders of one role: from the last
// proof of one to the first proof of the next. Each is longer than what really
// was vacant, by two samples at the most.
func vacancies(terms []term) []vacancy {
	terms = slices.Clone(terms)
	slices.SortFunc(terms, func(a, b term) int { return cmp.Compare(a.first.after, b.first.after) })
	var out []vacancy
	for i := 1; i < len(terms); i++ {
		out = append(out, vacancy{
			span: span{terms[i-1].last.before, terms[i].first.after},
			from: terms[i-1], to: terms[i],
		})
	}
	return out
}

type vacancy struct {
	span
	from, to term
}

// tooLong returns the vacancies that exceed the bound.
func tooLong(vs []vacancy, bound time.Duration) []string {
	var faults []string
	for _, v := range vs {
		if v.length() > bound {
			faults = append(faults, fmt.Sprintf("vacant for %v, more than %v: from %v to %v",
				v.length().Round(time.Millisecond), bound, v.from, v.to))
		}
	}
	return faults
}

// life is what is known of one member and one role: its runs, and between which
// instants the process was alive at most. Before and after it led nothing.
type life struct {
	member     string
	born, died time.Duration // died: 0 if it lives
	runs       []run
}

const never = time.Duration(1<<63 - 1)

// idle returns the times at which the member certainly did not lead: between two
// consecutive samples that say so, until the first one and after death. That it
// did not turn leader and back again between two samples is certain as well, since
// a term lasts T at least: runs are cut where samples lie further apart than that.
func (l life) idle() []span {
	out := []span{{-never, l.born}}
	for i, r := range l.runs {
		if r.answer != answerNo {
			continue
		}
		s := r.proven()
		if i == 0 {
			s.from = -never
		}
		out = append(out, s)
	}
	if l.died != 0 {
		out = append(out, span{l.died, never})
	}
	return out
}

// leading returns the times at which the member certainly led.
func (l life) leading() []span {
	var out []span
	for _, r := range l.runs {
		if r.answer != answerNo {
			out = append(out, r.proven())
		}
	}
	return out
}

// uncovered returns the times within s at which no member led, where that is
// certain: every one of them is proven idle.
func uncovered(lives []life, s span) []span {
	common := []span{s}
	for _, l := range lives {
		common = intersect(common, union(l.idle()))
	}
	return common
}

// unproven returns the times within s at which no member is proven to have led.
// What was really uncovered is less, by two samples and whatever the machine kept
// the members from sampling.
func unproven(lives []life, s span) []span {
	var led []span
	for _, l := range lives {
		led = append(led, l.leading()...)
	}
	var out []span
	at := s.from
	for _, l := range union(led) {
		if gap := (span{at, min(l.from, s.to)}); gap.length() > 0 {
			out = append(out, gap)
		}
		at = max(at, l.to)
	}
	if gap := (span{at, s.to}); gap.length() > 0 {
		out = append(out, gap)
	}
	return out
}

// firstLed is the first instant at which any of the members is proven to lead.
func firstLed(lives []life) (time.Duration, bool) {
	first, ok := never, false
	for _, l := range lives {
		for _, s := range l.leading() {
			if s.from <= s.to && s.from < first {
				first, ok = s.from, true
			}
		}
	}
	return first, ok
}

// union returns the spans sorted and merged, without the empty ones.
func union(spans []span) []span {
	spans = slices.DeleteFunc(slices.Clone(spans), func(s span) bool { return s.to < s.from })
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var out []span
	for _, s := range spans {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// intersect returns what two sorted lists of disjoint spans have in common and is
// longer than nothing.
func intersect(a, b []span) []span {
	var out []span
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if s := (span{max(a[i].from, b[j].from), min(a[i].to, b[j].to)}); s.from < s.to {
			out = append(out, s)
		}
		if a[i].to < b[j].to {
			i++
		} else {
			j++
		}
	}
	return out
}

func longest(spans []span) time.Duration {
	var most time.Duration
	for _, s := range spans {
		most = max(most, s.length())
	}
	return most
}

// told is one event that a member's application was given.
type told struct {
	at    time.Duration
	what  string // acquired, revoked or fenced
	token int64
}

// eventFaults checks what one member was told of one partition, in order, against
// its terms of a role there: acquired, then exactly one of revoked and fenced,
// then acquired again with a greater token; and no leading under a token before
// its acquired. In non-exclusive mode tokens are all −1 and only the order counts.
func eventFaults(events []told, terms []term) []string {
	var faults []string
	leads, token := false, int64(-1)
	acquired := map[int64]time.Duration{}
	for _, e := range events {
		switch {
		case e.what == "acquired" && leads:
			faults = append(faults, fmt.Sprintf("acquired token %d while token %d was neither revoked nor fenced", e.token, token))
		case e.what == "acquired" && e.token >= 0 && e.token <= token:
			faults = append(faults, fmt.Sprintf("acquired token %d after token %d", e.token, token))
		case e.what != "acquired" && !leads:
			faults = append(faults, fmt.Sprintf("%s, token %d, without having acquired", e.what, e.token))
		case e.what != "acquired" && e.token != token:
			faults = append(faults, fmt.Sprintf("%s of token %d in the term of token %d", e.what, e.token, token))
		}
		if leads = e.what == "acquired"; leads {
			token = e.token
			acquired[token] = e.at
		}
	}
	for _, t := range terms {
		// Leadership turns true as the event is handed over, a moment before the
		// barrier can read the clock: a long one if the process is suspended or
		// starved there, and for ever if it is killed.
		switch at, ok := acquired[t.token]; {
		case !ok && t.proven().length() > tellingGrace:
			faults = append(faults, fmt.Sprintf("led without having been told: %v", t))
		case ok && t.first.before < at-tellingGrace:
			faults = append(faults, fmt.Sprintf("led long before it was told of token %d: %v", t.token, t))
		}
	}
	return faults
}

const tellingGrace = time.Second

func list(faults []string) string { return strings.Join(faults, "\n") }
