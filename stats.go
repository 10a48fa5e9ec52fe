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

// Stats are this process's counters since New, and its state at the instant of the call. Counters
// never decrease. Role counts cover all roles below R. docs/guide.md#what-works-in-which-mode lists the
// fields that are zero in non-exclusive mode.
//
// A follower that is cut off reads nothing and reports every role as vacant: look at CutOff, and
// compare several processes, before you trust Vacant of one.
type Stats struct {
	Records   uint64 `json:"records"`   // all records read
	Foreign   uint64 `json:"foreign"`   // skipped records of other groups and topics
	Newer     uint64 `json:"newer"`     // skipped records of newer versions of this library
	Malformed uint64 `json:"malformed"` // skipped records that cannot be read
	// LogResets is how often this process lost its place in the log of a partition and started
	// again with it: the log went back or contradicted what had been read, its head was deleted
	// before it was read, or its client was replaced.
	LogResets uint64 `json:"log_resets"`
	// Contradictions is how often this process found that another process has computed a different
	// state from the same log, which should never happen. All processes then compare their states,
	// and a process that differs from the majority starts again. The log names the process.
	Contradictions uint64 `json:"contradictions"`
	// ReadersReplaced is how often a client was replaced because it stood still: a log reader that for
	// HeartbeatTimeout (at least five seconds) did not return records that the log had, or a member of
	// a consumer group that four times in a row reached no broker while another client did.
	ReadersReplaced uint64 `json:"readers_replaced"`
	// Appended is how many records the log has acknowledged. AppendFailed is how many it has not;
	// these may be in the log or not.
	Appended     uint64 `json:"appended"`
	AppendFailed uint64 `json:"append_failed"`
	// Throttled is the total time for which brokers have made this process wait because of a quota
	// (Kafka's client quotas). It is up to a minute behind.
	Throttled time.Duration `json:"throttled"`

	// LoginFailures is how often this process could not get a valid token to log in with
	// (Config.LoginToken, sasl.oauthbearer.*). librdkafka reports each failed attempt, and an unusable
	// token once.
	LoginFailures uint64 `json:"login_failures"`

	// LogLinesWaiting is how many lines Config.Logger's handler has not returned from: if it stays
	// above 0, the handler is blocked. LogLinesLost is how many lines the handler never got, because
	// 1,024 others waited (512 for debug lines), or on which it panicked or returned an error.
	LogLinesWaiting int    `json:"log_lines_waiting"`
	LogLinesLost    uint64 `json:"log_lines_lost"`

	// RefusedSettings are the settings that the cluster refused when this process created the
	// leader topic: for each setting's name, what its absence means. Other processes log the
	// settings of the topic that they find, and do not know what was refused.
	RefusedSettings map[string]string `json:"refused_settings"`

	// RequestsAccepted counts requests of other processes that Config.Requests accepted.
	// RequestsRefused counts those that it refused, and those refused without calling it.
	RequestsAccepted uint64 `json:"requests_accepted"`
	RequestsRefused  uint64 `json:"requests_refused"`

	// Rebalances counts the calls of Rebalance on this process, also for requests of others.
	// RolesRebalanced counts the roles that it handed over for balance or preference during these calls.
	Rebalances      uint64 `json:"rebalances"`
	RolesRebalanced uint64 `json:"roles_rebalanced"`

	// Preparation is about roles that are prepared before they are led; see Config.Prepare.
	Preparation Preparation `json:"preparation"`

	// TermsStarted counts the terms that this process has won, one for each role; TermsEnded
	// counts those that have ended, by Reason. Both include terms of which the application was not
	// told because it did not pulse meanwhile. In non-exclusive mode they count one for each
	// partition.
	TermsStarted uint64            `json:"terms_started"`
	TermsEnded   map[Reason]uint64 `json:"terms_ended"`

	// RoundTrips is how long this process's records, except Releases, took from being handed to the
	// client until they were read back. One that took longer than HeartbeatTimeout counts as
	// HeartbeatTimeout.
	RoundTrips Timing `json:"round_trips"`
	// Drains is how long the application took from LeaderRevoked until it had finished or
	// DrainTimeout was over: one value for all roles of a partition that are handed to one
	// successor together.
	Drains Timing `json:"drains"`
	// Steps is how long each step of the election took, such as handling a record or looking at
	// 4,096 roles for Standings. During a step this process reads and appends nothing. No step
	// should take longer than a fiftieth of HeartbeatTimeout; if steps do, there are too many roles
	// for HeartbeatTimeout and this machine, or the machine is overloaded.
	Steps Timing `json:"steps"`
	// Vacancies is how long roles had no leader, one value for each role that has one again: from
	// the Release to the next Claim at a hand-over; from the last evidence of the former holder to
	// the next Claim after a crash, at most a HeartbeatInterval more than the truth. Leaderless is
	// the total in seconds over all roles. It includes vacancies that have not ended. A holder's silence before
	// its lease is over is added only once another term has begun, since the holder may be heard again.
	//
	// Time of which this process can know nothing does not count: while it was suspended, or while its
	// own records did not come back (CutOff). If the log itself stood still, as in an outage of the
	// broker, the time counts afterwards from the end of the holder's lease on, less up to
	// HeartbeatTimeout. An observer, which writes nothing, counts what it reports as StatusVacant.
	Vacancies  Timing  `json:"vacancies"`
	Leaderless float64 `json:"leaderless"`
	// LeaderSilence is the longest time for which any role has had no sign of a leader: since the newest
	// evidence of its holder, if two heartbeats are missing, or since its Release. It is 0 if all leaders
	// were heard, and while CutOff is not 0.
	LeaderSilence time.Duration `json:"leader_silence"`
	// CutOff is for how long this process has read nothing although it should have, since its own
	// records do not come back: its broker or its network is down, and it cannot know who leads.
	// 0 while it reads; observers, which write nothing, have 0. With small logs it is for how long
	// most of them were not heard, and observers have it, too.
	CutOff time.Duration `json:"cut_off"`

	// Roles is R, as this process has it.
	Roles int `json:"roles"`
	// Led is how many roles this process leads at this instant.
	Led int `json:"led"`
	// Held and Vacant are the numbers of roles with that Status; the rest of Roles are StatusUnknown.
	Held   int `json:"held"`
	Vacant int `json:"vacant"`
	// EvidenceAge is the greatest age of V among the partitions on which this process holds a
	// role, 0 if it holds none. Leadership is over when it reaches HeartbeatTimeout (nine tenths
	// of it in exclusive mode). On a majority of logs, V is derived from the logs that sustain a
	// term.
	EvidenceAge time.Duration `json:"evidence_age"`
	// ClaimsWithheld is for how long this process has claimed nothing, though roles were vacant, because
	// its own records take a quarter of HeartbeatTimeout or longer to come back; 0 if they do not. After a
	// start it grows for one round trip. If it goes on growing, raise HeartbeatTimeout.
	ClaimsWithheld time.Duration `json:"claims_withheld"`
	// RecordAge is how long ago this process last read a record, or called New if it has read none.
	RecordAge time.Duration `json:"record_age"`
	// PulseAge is how long ago the application last gave a sign of life, or called New. It is 0
	// while the application waits in Pulse, Background or Lead, or is in the barrier, and for an
	// observer.
	PulseAge time.Duration `json:"pulse_age"`
	// Barrier is how long the barrier has been at work on an event, 0 if it is not. From HeartbeatTimeout
	// (MaxPulseInterval if that is shorter) on, this process claims nothing. A barrier that never returns keeps the roles
	// that it was told of, unless Config.Healthy objects.
	Barrier time.Duration `json:"barrier"`
	// Reached is whether a broker, or the host of a small log, has answered this process since
	// New. If it stays false, check bootstrap.servers and the network. RecordAge shows whether a
	// broker still answers.
	Reached bool `json:"reached"`
	// Healthy is whether Config.Healthy last returned nil; true if it is not set.
	Healthy bool `json:"healthy"`
	// Sentinel is the state of this process at its sentinel (Config.Sentinel). "watching": a crash
	// is followed by a Release. "refused": the sentinel refused or was not reached, and a crash
	// costs HeartbeatTimeout. "none": no sentinel is configured, or the state is not known yet.
	Sentinel string `json:"sentinel"`
}

// Stats returns the counters and the state of this process. The call takes time in proportion to R
// (about half a millisecond for 100,000 roles). It looks at 4,096 roles at a time, so that it does not
// delay this process's records; with more roles, Held and Vacant count each role at some
// instant of the call. It uses no network.
func (n *Neli) Stats() Stats {
	s := Stats{}
	switch a := n.core.arbiter.(type) {
	case *elector.Elector:
		s = exclusiveStats(a.Stats())
	case *nonexclusive.Arbiter:
		s = nonExclusiveStats(a.Stats())
	}
	now := n.now()
	n.set.health.report(&s)
	s.Sentinel = n.set.watched.state()
	s.LogLinesWaiting, s.LogLinesLost = n.set.lines.Waiting(), n.set.lines.Lost()
	if n.core.elector == nil {
		s.Roles = int(n.roles.Load())
	}
	if s.RecordAge < 0 {
		s.RecordAge = now.Age(n.began)
	}
	if !n.set.Observer {
		s.PulseAge, s.Barrier = n.silent(now), n.inBarrier(now)
	}
	n.mu.Lock()
	s.Healthy = !n.desired.Unhealthy
	n.mu.Unlock()
	return s
}

func exclusiveStats(s elector.Stats) Stats {
	return Stats{
		Records: s.Records, Foreign: s.Foreign, Newer: s.Newer, Malformed: s.Malformed,
		LogResets: s.LogResets, Contradictions: s.Contradictions, Appended: s.Appended, AppendFailed: s.AppendFailed,
		RequestsAccepted: s.RequestsAccepted, RequestsRefused: s.RequestsRefused, Rebalances: s.Rebalances, RolesRebalanced: s.RolesRebalanced,
		Preparation:  preparationOf(s.Prepares, s.Given),
		TermsStarted: s.Terms.Started, TermsEnded: byReason(s.Terms),
		RoundTrips: timingOf(s.RoundTrips), Drains: timingOf(s.Drains), Steps: timingOf(s.Steps), Vacancies: timingOf(s.Vacancies), Leaderless: s.Leaderless,
		Roles: s.Held + s.Vacant + s.Unknown, Led: s.Led, Held: s.Held, Vacant: s.Vacant,
		EvidenceAge: ageOf(s.Evidence, s.Now, 0), RecordAge: ageOf(s.Read, s.Now, never), LeaderSilence: s.Silence, CutOff: s.CutOff, ClaimsWithheld: s.Withheld,
	}
}

func nonExclusiveStats(s nonexclusive.Stats) Stats {
	return Stats{
		Records: s.Records, Appended: s.Appended, AppendFailed: s.AppendFailed,
		TermsStarted: s.Terms.Started, TermsEnded: byReason(s.Terms),
		Led: s.Led, EvidenceAge: s.Evidence, RecordAge: ageOf(s.Read, s.Now, never),
	}
}

// byReason returns the ended terms by reason, without reasons that never occurred.
func byReason(c term.Counts) map[Reason]uint64 {
	ended := map[Reason]uint64{}
	for why, count := range c.Ended {
		if count > 0 {
			ended[Reason(why)] = count
		}
	}
	return ended
}

// never stands for the RecordAge of a process that has read no record.
const never = time.Duration(-1)

func ageOf(at, now clock.Instant, none time.Duration) time.Duration {
	if at == (clock.Instant{}) {
		return none
	}
	return max(0, now.Age(at))
}

// Timing says how long something took, over all times that it happened.
type Timing struct {
	Count uint64 `json:"count"` // how often it happened
	// Sum is the total in seconds: that of a million roles may be too long for a time.Duration.
	Sum float64 `json:"sum"`
	// Buckets say how many took at most 5 ms, at most 10 ms, and so on up to 60 s. The bounds are the
	// same in every Timing and ascend. It is nil if nothing is measured, as in non-exclusive mode.
	Buckets []TimingBucket `json:"buckets"`
}

// TimingBucket says how many durations of a Timing were not longer than a bound.
type TimingBucket struct {
	UpTo  time.Duration // the bound. JSON has it in seconds
	Count uint64        // of durations up to the bound, those of the shorter bounds included
}

// timingOf returns the public form of a Timing.
func timingOf(t tally.Timing) Timing {
	out := Timing{Count: t.Count, Sum: t.Sum, Buckets: make([]TimingBucket, len(tally.Bounds))}
	sum := uint64(0)
	for i, bound := range tally.Bounds {
		sum += t.Buckets[i]
		out.Buckets[i] = TimingBucket{bound, sum}
	}
	return out
}

// MarshalJSON writes the bound in seconds.
func (b TimingBucket) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		UpTo  seconds `json:"up_to"`
		Count uint64  `json:"count"`
	}{seconds(b.UpTo), b.Count})
}

// MarshalJSON writes durations as seconds.
func (s Stats) MarshalJSON() ([]byte, error) {
	type plain Stats
	return json.Marshal(struct {
		plain
		Throttled      seconds `json:"throttled"`
		LeaderSilence  seconds `json:"leader_silence"`
		CutOff         seconds `json:"cut_off"`
		EvidenceAge    seconds `json:"evidence_age"`
		ClaimsWithheld seconds `json:"claims_withheld"`
		RecordAge      seconds `json:"record_age"`
		PulseAge       seconds `json:"pulse_age"`
		Barrier        seconds `json:"barrier"`
	}{plain(s), seconds(s.Throttled), seconds(s.LeaderSilence), seconds(s.CutOff), seconds(s.EvidenceAge), seconds(s.ClaimsWithheld),
		seconds(s.RecordAge), seconds(s.PulseAge), seconds(s.Barrier)})
}
