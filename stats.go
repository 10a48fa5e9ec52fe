package neli

import (
	"encoding/json"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/nonexclusive"
	"github.com/goneli/neli/internal/tally"
	"github.com/goneli/neli/internal/term"
)

// Stats is what this process has counted since New, and how things are with it at the
// instant of the call. Counters never go back. What only one mode can know stays zero in
// the other one. Of roles, all are meant that are below R; none is named.
//
// A follower that is cut off reads nothing, and takes every role for vacant: compare
// several processes before you believe Vacant and Leaderless of one.
type Stats struct {
	Records   uint64 `json:"records"`   // read, all
	Foreign   uint64 `json:"foreign"`   // of other groups and topics, skipped. Exclusive mode
	Newer     uint64 `json:"newer"`     // of a newer version of this library, skipped. Exclusive mode
	Malformed uint64 `json:"malformed"` // skipped. Exclusive mode
	// LogResets is how often this process lost its place in the log of a partition, and
	// began anew with it: the log went back or contradicts what is known of it, its
	// head was deleted before it was read, or its client had to be replaced. Exclusive
	// mode.
	LogResets uint64 `json:"log_resets"`
	// Contradictions is how often this process has found that another one makes something
	// else of the same log. That should never be. All compare then, and who differs from
	// most begins anew. Diverged is the name of the process that was last found to differ
	// from most, empty if none was. Exclusive mode.
	Contradictions uint64 `json:"contradictions"`
	Diverged       string `json:"diverged"`
	// ReadersReplaced is how often a client that reads a log, or is a member of a consumer
	// group, was replaced because it stood still for HeartbeatTimeout (five seconds at
	// least): the log had records that it did not return, or it reached no broker while
	// another client did.
	ReadersReplaced uint64 `json:"readers_replaced"`
	// Appended is how many records the log has confirmed, and AppendFailed how many it
	// has not: these may be in it or not.
	Appended     uint64 `json:"appended"`
	AppendFailed uint64 `json:"append_failed"`
	// Throttled is how long, in all, brokers have made this process wait because a
	// quota was exceeded (client quotas of Kafka). It is up to a minute behind.
	Throttled time.Duration `json:"throttled"`

	// TokenFailures is how often this process could not have a token to log in with
	// (Config.Token, sasl.oauthbearer.*), or not one that is valid. librdkafka tells of
	// a failure for each attempt, of a token that is of no use once.
	TokenFailures uint64 `json:"token_failures"`

	// RequestsAccepted counts the requests of other processes that Config.Requests has
	// accepted, and RequestsRefused those that it has refused, or that were refused without
	// asking it. Exclusive mode.
	RequestsAccepted uint64 `json:"requests_accepted"`
	RequestsRefused  uint64 `json:"requests_refused"`

	// TermsStarted counts the terms that this process has won, one for each role, and
	// TermsEnded those that have ended, by Reason: also those of which the application
	// was not told because it did not pulse meanwhile. In non-exclusive mode, one for
	// each partition.
	TermsStarted uint64            `json:"terms_started"`
	TermsEnded   map[Reason]uint64 `json:"terms_ended"`

	// RoundTrips is how long this process's records took from being handed over to
	// being read back; one that took longer than HeartbeatTimeout counts as that.
	// Exclusive mode.
	RoundTrips Timing `json:"round_trips"`
	// Drains is how long it took from when the application was asked to finish
	// (LeaderRevoked) until it had, or its DrainTimeout was over: one for all roles of
	// a partition that were handed over to one successor together. Exclusive mode.
	Drains Timing `json:"drains"`
	// Steps is how long this process took for each of its steps, such as to deal with a
	// record, or to answer Stats or Standings: meanwhile it reads and appends nothing. With
	// HeartbeatTimeout T no step should take longer than T/50; if some do, there are too many
	// roles for T and this machine, or it has too much else to do. Exclusive mode.
	Steps Timing `json:"steps"`
	// Vacancies is how long roles were vacant, from Vacant to Held as Watch has it, one
	// for each role: what a hand-over cost, and a fail-over from when the holder's lease
	// was over by any clock. Leaderless is for how many seconds, added up over roles,
	// any of them has been vacant, those included that still are. Exclusive mode.
	Vacancies  Timing  `json:"vacancies"`
	Leaderless float64 `json:"leaderless"`

	// Roles is R, as this process has it.
	Roles int `json:"roles"`
	// Led is how many roles this process leads at this instant.
	Led int `json:"led"`
	// Held, Vacant and Unknown are how many roles are so, as this process has read
	// (Status). They add up to R. Exclusive mode.
	Held    int `json:"held"`
	Vacant  int `json:"vacant"`
	Unknown int `json:"unknown"`
	// Members is how many processes Members returns. Exclusive mode.
	Members int `json:"members"`
	// OldestEvidence is the greatest age of V of any partition on which this process
	// holds something, 0 if it holds nothing: when it reaches HeartbeatTimeout (in
	// exclusive mode nine tenths of it) leadership is over. On a majority of logs V is
	// what the logs that sustain a term say together.
	OldestEvidence time.Duration `json:"oldest_evidence"`
	// LastRecord is how long ago a record was last read, or New was called if none was.
	LastRecord time.Duration `json:"last_record"`
	// LastPulse is how long ago the application was last heard of, or New was called;
	// 0 while it waits in Pulse, Background or Lead, and of an observer.
	LastPulse time.Duration `json:"last_pulse"`
	// Reached is whether a broker, or what hosts a small log, has answered this process since
	// New. If it stays false, look at bootstrap.servers and the network. LastRecord tells
	// whether one still answers.
	Reached bool `json:"reached"`
	// Healthy is what Config.Healthy last said; true if there is none.
	Healthy bool `json:"healthy"`
	// Sentinel is what a sentinel does for this process (Config.Sentinel): "watching", and
	// a crash is followed by a Release; "refused", by the sentinel or because none was reached, and a crash costs
	// HeartbeatTimeout; "none" if none is configured, or it is not known yet.
	Sentinel string `json:"sentinel"`
}

// Stats returns what was counted so far, and how things are. It takes a moment that grows
// with R, a tenth of a millisecond for 100,000 roles, and delays this process's records
// for so long; it touches no network.
func (n *Neli) Stats() Stats {
	s := n.core.stats()
	now := n.now()
	s.Reached = !n.set.contact.Lacking()
	s.TokenFailures = n.set.tokenFailures.Load()
	s.ReadersReplaced, s.Sentinel = n.set.replaced.Load(), n.set.watched.state()
	s.Throttled, s.Roles = n.set.throttling.Total(), int(n.roles.Load())
	if s.LastRecord < 0 {
		s.LastRecord = now.Age(n.began)
	}
	if n.waiting.Load() == 0 && !n.set.observer {
		s.LastPulse = max(0, now.Mono.Sub(clock.Mono(n.lastPulse.Load())))
	}
	n.mu.Lock()
	s.Healthy = !n.desired.Unhealthy
	n.mu.Unlock()
	return s
}

func exclusiveStats(s elector.Stats) Stats {
	return Stats{
		Records: s.Records, Foreign: s.Foreign, Newer: s.Newer, Malformed: s.Malformed,
		LogResets: s.LogResets, Contradictions: s.Contradictions, Diverged: s.Diverged, Appended: s.Appended, AppendFailed: s.AppendFailed,
		RequestsAccepted: s.RequestsAccepted, RequestsRefused: s.RequestsRefused,
		TermsStarted: s.Terms.Started, TermsEnded: byReason(s.Terms),
		RoundTrips: Timing(s.RoundTrips), Drains: Timing(s.Drains), Steps: Timing(s.Steps), Vacancies: Timing(s.Vacancies), Leaderless: s.Leaderless,
		Led: s.Led, Held: s.Held, Vacant: s.Vacant, Unknown: s.Unknown, Members: s.Members,
		OldestEvidence: ageOf(s.Evidence, s.Now, 0), LastRecord: ageOf(s.Read, s.Now, never),
	}
}

func nonExclusiveStats(s nonexclusive.Stats) Stats {
	return Stats{
		Records: s.Records, Appended: s.Appended, AppendFailed: s.AppendFailed,
		TermsStarted: s.Terms.Started, TermsEnded: byReason(s.Terms),
		Led: s.Led, OldestEvidence: s.Evidence, LastRecord: ageOf(s.Read, s.Now, never),
	}
}

// byReason returns how many terms ended, by reason. What never happened is left out.
func byReason(c term.Counts) map[Reason]uint64 {
	ended := map[Reason]uint64{}
	for why, count := range c.Ended {
		if count > 0 {
			ended[Reason(why)] = count
		}
	}
	return ended
}

// never stands for a LastRecord that was not.
const never = time.Duration(-1)

func ageOf(at, now clock.Instant, none time.Duration) time.Duration {
	if at == (clock.Instant{}) {
		return none
	}
	return max(0, now.Age(at))
}

// Timing is a histogram of durations.
type Timing struct {
	Count uint64  `json:"count"`
	Sum   float64 `json:"sum"` // seconds
	// Buckets are those durations that are at most TimingBounds()[i] and longer than
	// the bound before. Those that are longer than all bounds are in Count only.
	Buckets [12]uint64 `json:"buckets"`
}

// TimingBounds returns the upper bounds of the buckets of every Timing, ascending, from
// 5 ms to 60 s.
func TimingBounds() [12]time.Duration { return tally.Bounds }

// MarshalJSON writes durations as seconds.
func (s Stats) MarshalJSON() ([]byte, error) {
	type plain Stats
	return json.Marshal(struct {
		plain
		Throttled      seconds `json:"throttled"`
		OldestEvidence seconds `json:"oldest_evidence"`
		LastRecord     seconds `json:"last_record"`
		LastPulse      seconds `json:"last_pulse"`
	}{plain(s), seconds(s.Throttled), seconds(s.OldestEvidence), seconds(s.LastRecord), seconds(s.LastPulse)})
}
