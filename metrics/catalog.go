package metrics

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/goneli/neli"
	"github.com/prometheus/client_golang/prometheus"
)

// metric describes one metric, for the collector, docs/metrics.md and the tests.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	exclusive  bool // shown in exclusive mode only
	detail     bool // shown with WithRoles only

	values func(*sample, func(v float64, labels ...string))
	timing func(*sample) neli.Timing // for a histogram, in place of values
}

// sample has the data of one scrape.
type sample struct {
	*collector
	neli.Stats
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

var catalog = []metric{
	{name: "neli_info", kind: gauge, labels: []string{"version", "mode", "nomination", "name"},
		help: "Always 1; the labels name this process's version of the library and its configuration.",
		values: func(s *sample, emit func(float64, ...string)) {
			emit(1, s.version, text(s.n.Config().Mode), text(s.n.Config().Nomination), s.n.Config().Name)
		}},
	{name: "neli_state", kind: gauge, labels: []string{"state"},
		help: "1 for the state of this process, else 0: live, closing, closed, failed.",
		values: func(s *sample, emit func(float64, ...string)) {
			now := s.n.State()
			for state := neli.StateLive; state <= neli.StateFailed; state++ {
				emit(truth(state == now), text(state))
			}
		}},
	{name: "neli_is_leader", kind: gauge,
		help:   "1 if this process leads at least one role at this instant, checked by its clock.",
		values: one(func(s *sample) float64 { return truth(s.n.IsLeader()) })},
	{name: "neli_roles_led", kind: gauge,
		help:   "Roles that this process leads at this instant.",
		values: one(func(s *sample) float64 { return float64(s.Led) })},
	{name: "neli_roles", kind: gauge, labels: []string{"status"}, exclusive: true,
		help: "Roles by status, as this process sees them: held, vacant, unknown. A process that is cut off reports all as vacant.",
		values: func(s *sample, emit func(float64, ...string)) {
			emit(float64(s.Held), text(neli.StatusHeld))
			emit(float64(s.Vacant), text(neli.StatusVacant))
			emit(float64(s.Roles-s.Held-s.Vacant), text(neli.StatusUnknown))
		}},
	{name: "neli_members", kind: gauge, exclusive: true,
		help:   "Members of the group that this process has heard of, including itself unless it is an observer.",
		values: one(func(s *sample) float64 { return float64(len(s.n.Members())) })},
	{name: "neli_terms_started_total", kind: counter,
		help:   "Terms that this process has won: one for each role, in non-exclusive mode for each partition.",
		values: one(func(s *sample) float64 { return float64(s.TermsStarted) })},
	{name: "neli_terms_ended_total", kind: counter, labels: []string{"reason"},
		help: "Terms of this process that have ended, by reason (the constants Reason… of the library): one for each role, in non-exclusive mode for each partition.",
		values: func(s *sample, emit func(float64, ...string)) {
			for why := neli.ReasonUnassigned; why <= neli.ReasonFatal; why++ {
				emit(float64(s.TermsEnded[why]), text(why))
			}
		}},
	{name: "neli_requests_total", kind: counter, labels: []string{"answer"}, exclusive: true,
		help: "Requests of other processes to hand over or step down: accepted by Config.Requests, or refused by it or without calling it.",
		values: func(s *sample, emit func(float64, ...string)) {
			emit(float64(s.RequestsAccepted), "accepted")
			emit(float64(s.RequestsRefused), "refused")
		}},
	{name: "neli_leaderless_seconds_total", kind: counter, exclusive: true,
		help:   "Seconds without a leader, summed over roles, as this process saw them. After a crash, those since the holder's last heartbeat are added when the next term begins. Time for which this process read nothing does not count.",
		values: one(func(s *sample) float64 { return s.Leaderless })},
	{name: "neli_vacancy_duration_seconds", exclusive: true,
		help:   "How long a role had no leader before it was held again, as this process saw it: from the release at a hand-over, from the holder's last heartbeat after a crash.",
		timing: func(s *sample) neli.Timing { return s.Vacancies }},
	{name: "neli_leader_silence_seconds", kind: gauge, exclusive: true,
		help:   "Seconds since there was a sign of a leader of the role for which that is longest: since its holder's last heartbeat, if two are missing, or since its release. 0 if all leaders were heard, and while this process reads nothing.",
		values: one(func(s *sample) float64 { return s.LeaderSilence.Seconds() })},
	{name: "neli_cut_off_seconds", kind: gauge, exclusive: true,
		help:   "Seconds for which this process has read nothing although its own records should have come back; 0 while it reads. Meanwhile it does not know who leads.",
		values: one(func(s *sample) float64 { return s.CutOff.Seconds() })},
	{name: "neli_drain_duration_seconds", exclusive: true,
		help:   "How long the application took to finish, at most the time it was allowed: one sample for all roles of a partition that go to one successor together.",
		timing: func(s *sample) neli.Timing { return s.Drains }},
	{name: "neli_step_duration_seconds", exclusive: true,
		help:   "Duration of each step, such as processing a record or answering Stats. During a step this process reads and appends nothing. No step should exceed a fiftieth of T.",
		timing: func(s *sample) neli.Timing { return s.Steps }},
	{name: "neli_evidence_age_seconds", kind: gauge,
		help:   "Age of the newest evidence (beat) of this process's leadership, on the partition where it is oldest; 0 if it holds nothing. Leadership ends at 0.9 of neli_heartbeat_timeout_seconds, in non-exclusive mode at 1.",
		values: one(func(s *sample) float64 { return s.EvidenceAge.Seconds() })},
	{name: "neli_heartbeat_timeout_seconds", kind: gauge,
		help:   "T, Config.HeartbeatTimeout.",
		values: one(func(s *sample) float64 { return s.n.Config().HeartbeatTimeout.Seconds() })},
	{name: "neli_record_round_trip_seconds", exclusive: true,
		help:   "Time from handing a record to the client until this process reads it back; more than T counts as T.",
		timing: func(s *sample) neli.Timing { return s.RoundTrips }},
	{name: "neli_records_read_total", kind: counter, labels: []string{"kind"},
		help: "Records that this process has read: valid; foreign (of other groups or topics); newer (of a newer wire version); malformed.",
		values: func(s *sample, emit func(float64, ...string)) {
			emit(float64(s.Records-s.Foreign-s.Newer-s.Malformed), "valid")
			emit(float64(s.Foreign), "foreign")
			emit(float64(s.Newer), "newer")
			emit(float64(s.Malformed), "malformed")
		}},
	{name: "neli_record_age_seconds", kind: gauge,
		help:   "Time since this process last read a record, or since its start.",
		values: one(func(s *sample) float64 { return s.RecordAge.Seconds() })},
	{name: "neli_records_appended_total", kind: counter,
		help:   "Records of this process that the log acknowledged.",
		values: one(func(s *sample) float64 { return float64(s.Appended) })},
	{name: "neli_append_failures_total", kind: counter,
		help:   "Records of this process that the log did not acknowledge; they may or may not be in it.",
		values: one(func(s *sample) float64 { return float64(s.AppendFailed) })},
	{name: "neli_throttled_seconds_total", kind: counter,
		help:   "Seconds for which brokers throttled this process because of a quota.",
		values: one(func(s *sample) float64 { return s.Throttled.Seconds() })},
	{name: "neli_login_failures_total", kind: counter,
		help:   "Failed attempts of this process to get a token to log in with.",
		values: one(func(s *sample) float64 { return float64(s.LoginFailures) })},
	{name: "neli_refused_topic_settings", kind: gauge, labels: []string{"setting"},
		help: "1 for each setting that the cluster refused when this process created the leader topic.",
		values: func(s *sample, emit func(float64, ...string)) {
			for _, name := range slices.Sorted(maps.Keys(s.RefusedSettings)) {
				emit(1, name)
			}
		}},
	{name: "neli_rebalances_total", kind: counter, exclusive: true,
		help:   "Calls of Rebalance on this process.",
		values: one(func(s *sample) float64 { return float64(s.Rebalances) })},
	{name: "neli_rebalanced_roles_total", kind: counter, exclusive: true,
		help:   "Roles handed over during calls of Rebalance.",
		values: one(func(s *sample) float64 { return float64(s.RolesRebalanced) })},
	{name: "neli_preparations_total", kind: counter, labels: []string{"result"}, exclusive: true,
		help: "Calls of Config.Prepare: prepared, failed; prepared roles: led, let_go.",
		values: func(s *sample, emit func(float64, ...string)) {
			p := s.Preparation
			for result, n := range map[string]uint64{"prepared": p.Prepared, "failed": p.Failed, "led": p.Led, "let_go": p.LetGo} {
				emit(float64(n), result)
			}
		}},
	{name: "neli_preparations", kind: gauge, labels: []string{"state"}, exclusive: true,
		help: "Calls in progress: running; stuck (their contexts have ended).",
		values: func(s *sample, emit func(float64, ...string)) {
			emit(float64(s.Preparation.Running), "running")
			emit(float64(s.Preparation.Stuck), "stuck")
		}},
	{name: "neli_standbys", kind: gauge, labels: []string{"state"}, exclusive: true,
		help: "Roles for which this process stands by: ready; preparing.",
		values: func(s *sample, emit func(float64, ...string)) {
			emit(float64(s.Preparation.StandbysReady), "ready")
			emit(float64(s.Preparation.Standbys-s.Preparation.StandbysReady), "preparing")
		}},
	{name: "neli_preparation_seconds", kind: gauge, exclusive: true,
		help:   "How long the longest call in progress has taken.",
		values: one(func(s *sample) float64 { return s.Preparation.Longest.Seconds() })},
	{name: "neli_given_roles_total", kind: counter, labels: []string{"how"}, exclusive: true,
		help: "Roles given up warm (prepared), late, failed, young, unable; or called_off.",
		values: func(s *sample, emit func(float64, ...string)) {
			p := s.Preparation
			for how, n := range map[string]uint64{"warm": p.GivenWarm, "late": p.GivenLate, "failed": p.GivenFailed, "young": p.GivenYoung,
				"unable": p.GivenUnable, "called_off": p.CalledOff} {
				emit(float64(n), how)
			}
		}},
	{name: "neli_log_resets_total", kind: counter, exclusive: true,
		help:   "Times that this process lost its place in a partition's log and read it again.",
		values: one(func(s *sample) float64 { return float64(s.LogResets) })},
	{name: "neli_claims_withheld_seconds", kind: gauge, exclusive: true,
		help:   "Seconds for which this process has claimed nothing, though roles were vacant, because its own records take T/4 or longer to come back; 0: that is not so.",
		values: one(func(s *sample) float64 { return s.ClaimsWithheld.Seconds() })},
	{name: "neli_reached", kind: gauge,
		help:   "1 if a broker or log host has answered this process since its start, else 0.",
		values: one(func(s *sample) float64 { return truth(s.Reached) })},
	{name: "neli_contradictions_total", kind: counter, exclusive: true,
		help:   "Times that another process had computed a different state from the same log, which should never happen.",
		values: one(func(s *sample) float64 { return float64(s.Contradictions) })},
	{name: "neli_readers_replaced_total", kind: counter,
		help:   "Times that the client of a log reader or a consumer group was replaced because it was stuck.",
		values: one(func(s *sample) float64 { return float64(s.ReadersReplaced) })},
	{name: "neli_healthy", kind: gauge,
		help:   "1 if Config.Healthy last returned no error or is not set, else 0.",
		values: one(func(s *sample) float64 { return truth(s.Healthy) })},
	{name: "neli_sentinel", kind: gauge, labels: []string{"state"}, exclusive: true,
		help: "1 for the state of this process's sentinel, else 0: none (not configured, or not known to work yet); watching (fail-over after a crash takes round trips); refused (or not reached; fail-over takes T).",
		values: func(s *sample, emit func(float64, ...string)) {
			for _, state := range []string{"none", "watching", "refused"} {
				emit(truth(s.Sentinel == state), state)
			}
		}},
	{name: "neli_pulse_age_seconds", kind: gauge,
		help:   "Time since the application last pulsed; 0 while it waits in Pulse, Background or Lead, or is in the barrier.",
		values: one(func(s *sample) float64 { return s.PulseAge.Seconds() })},
	{name: "neli_barrier_seconds", kind: gauge,
		help:   "How long the barrier has been at work on an event, else 0.",
		values: one(func(s *sample) float64 { return s.Barrier.Seconds() })},
	{name: "neli_log_lines_waiting", kind: gauge,
		help:   "Log lines that Config.Logger's handler has not returned from.",
		values: one(func(s *sample) float64 { return float64(s.LogLinesWaiting) })},
	{name: "neli_log_lines_lost_total", kind: counter,
		help:   "Log lines that were dropped because Config.Logger's handler was busy, or that it did not take.",
		values: one(func(s *sample) float64 { return float64(s.LogLinesLost) })},
	{name: "neli_role_leader", kind: gauge, labels: []string{"role"}, detail: true,
		help: "1 if this process leads the role at this instant, else 0.",
		values: eachRole(func(s *sample, role int, emit func(float64)) {
			emit(truth(s.n.IsLeaderOf(role)))
		})},
	{name: "neli_role_token", kind: gauge, labels: []string{"role"}, detail: true, exclusive: true,
		help: "The fencing token under which this process leads the role; no series if it does not lead. Rounded above 2^53.",
		values: eachRole(func(s *sample, role int, emit func(float64)) {
			if token, ok := s.n.Token(role); ok {
				emit(float64(token))
			}
		})},
}

func one(value func(*sample) float64) func(*sample, func(float64, ...string)) {
	return func(s *sample, emit func(float64, ...string)) { emit(value(s)) }
}

// eachRole emits the values of the roles that WithRoles selects.
func eachRole(of func(s *sample, role int, emit func(float64))) func(*sample, func(float64, ...string)) {
	return func(s *sample, emit func(float64, ...string)) {
		for role := range min(s.detailed, s.Roles) {
			of(s, role, func(v float64) { emit(v, strconv.Itoa(role)) })
		}
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// text returns the name of a constant of the library, as log lines have it.
func text(of fmt.Stringer) string { return of.String() }
