package metrics

import (
	"reflect"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

// shows maps each field of Stats to the series that it changes, with their values when the field is 7 or 7 s.
var shows = map[string]map[string]float64{
	"Records":         {"neli_records_read_total valid": 7},
	"Foreign":         {"neli_records_read_total foreign": 7, "neli_records_read_total valid": 93},
	"Newer":           {"neli_records_read_total newer": 7, "neli_records_read_total valid": 93},
	"Malformed":       {"neli_records_read_total malformed": 7, "neli_records_read_total valid": 93},
	"LogResets":       {"neli_log_resets_total": 7},
	"Contradictions":  {"neli_contradictions_total": 7},
	"ReadersReplaced": {"neli_readers_replaced_total": 7},
	"Appended":        {"neli_records_appended_total": 7},
	"AppendFailed":    {"neli_append_failures_total": 7},
	"Throttled":       {"neli_throttled_seconds_total": 7},
	"LoginFailures":   {"neli_login_failures_total": 7},
	"RefusedSettings": {"neli_refused_topic_settings segment.ms": 1},
	"Rebalances":      {"neli_rebalances_total": 7},
	"RolesRebalanced": {"neli_rebalanced_roles_total": 7},
	"Preparation": {"neli_preparations_total prepared": 7, "neli_preparations_total failed": 7, "neli_preparations_total led": 7, "neli_preparations_total let_go": 7,
		"neli_preparations running": 7, "neli_preparations stuck": 7, "neli_preparation_seconds": 7, "neli_standbys ready": 7,
		"neli_given_roles_total warm": 7, "neli_given_roles_total late": 7, "neli_given_roles_total failed": 7, "neli_given_roles_total young": 7,
		"neli_given_roles_total unable": 7, "neli_given_roles_total called_off": 7},
	"RequestsAccepted": {"neli_requests_total accepted": 7},
	"RequestsRefused":  {"neli_requests_total refused": 7},
	"TermsStarted":     {"neli_terms_started_total": 7},
	"TermsEnded":       {"neli_terms_ended_total not_pulsed": 7},
	"RoundTrips":       {"neli_record_round_trip_seconds": 7},
	"Drains":           {"neli_drain_duration_seconds": 7},
	"Steps":            {"neli_step_duration_seconds": 7},
	"Vacancies":        {"neli_vacancy_duration_seconds": 7},
	"Leaderless":       {"neli_leaderless_seconds_total": 7},
	"LeaderSilence":    {"neli_leader_silence_seconds": 7},
	"CutOff":           {"neli_cut_off_seconds": 7},
	"Roles":            {"neli_role_leader 0": 0, "neli_role_leader 1": 0, "neli_roles unknown": 7}, // two, as c.detailed says
	"Led":              {"neli_roles_led": 7},
	"Held":             {"neli_roles held": 7, "neli_roles unknown": -7},
	"Vacant":           {"neli_roles vacant": 7, "neli_roles unknown": -7},
	"EvidenceAge":      {"neli_evidence_age_seconds": 7},
	"ClaimsWithheld":   {"neli_claims_withheld_seconds": 7},
	"RecordAge":        {"neli_record_age_seconds": 7},
	"PulseAge":         {"neli_pulse_age_seconds": 7},
	"Barrier":          {"neli_barrier_seconds": 7},
	"LogLinesWaiting":  {"neli_log_lines_waiting": 7},
	"LogLinesLost":     {"neli_log_lines_lost_total": 7},
	"Reached":          {"neli_reached": 1},
	"Healthy":          {"neli_healthy": 1},
	"Sentinel":         {"neli_sentinel watching": 1},
}

// Each field of Stats shows in the metrics that are named after it, and in no others.
func TestEachFieldOfStatsIsShown(t *testing.T) {
	bubble(t, func(t *testing.T, b *nelitest.Broker) {
		n := join(t, b, "a", nil)
		require.NoError(t, n.Close())
		c := &collector{n: n, detailed: 2}
		stats := reflect.TypeFor[neli.Stats]()
		require.Len(t, shows, stats.NumField())
		idle := neli.Stats{Records: 100}
		before := valuesOf(c, idle)
		for i := range stats.NumField() {
			s := idle
			seven(reflect.ValueOf(&s).Elem().Field(i))
			moved := map[string]float64{}
			for name, v := range valuesOf(c, s) {
				if was, shown := before[name]; !shown || v != was {
					moved[name] = v
				}
			}
			require.Equal(t, shows[stats.Field(i).Name], moved, stats.Field(i).Name)
		}
	})
}

// Each bucket of a Timing becomes one of Prometheus's. Durations longer than all bounds are in +Inf only.
func TestBucketsAreShown(t *testing.T) {
	var got dto.Metric
	desc := prometheus.NewDesc("neli_x", "", nil, nil)
	require.NoError(t, histogram(desc, neli.Timing{Count: 100, Sum: 2.5, Buckets: []neli.TimingBucket{
		{UpTo: 5 * time.Millisecond, Count: 3}, {UpTo: 2500 * time.Millisecond, Count: 99}}}).Write(&got))
	require.Equal(t, uint64(100), got.Histogram.GetSampleCount())
	require.Equal(t, 2.5, got.Histogram.GetSampleSum())
	require.Len(t, got.Histogram.Bucket, 2)
	for i, want := range []struct {
		bound float64
		count uint64
	}{{0.005, 3}, {2.5, 99}} {
		require.Equal(t, want.bound, got.Histogram.Bucket[i].GetUpperBound())
		require.Equal(t, want.count, got.Histogram.Bucket[i].GetCumulativeCount())
	}
}

// seven sets a field to 7: a number, a histogram's count, the counter of one reason, or one setting.
func seven(field reflect.Value) {
	switch of := field.Addr().Interface().(type) {
	case *time.Duration:
		*of = 7 * time.Second
	case *map[neli.Reason]uint64:
		*of = map[neli.Reason]uint64{neli.ReasonNotPulsed: 7}
	case *map[string]string:
		*of = map[string]string{"segment.ms": "7"}
	case *neli.Timing:
		of.Count = 7
	case *neli.Preparation:
		for i := range field.NumField() {
			seven(field.Field(i))
		}
	case *uint64:
		*of = 7
	case *int:
		*of = 7
	case *float64:
		*of = 7
	case *bool:
		*of = true
	case *string:
		*of = "watching"
	}
}

// valuesOf returns the values that the catalog makes of Stats, by name and labels; for a histogram the count.
func valuesOf(c *collector, of neli.Stats) map[string]float64 {
	s, out := sample{collector: c, Stats: of}, map[string]float64{}
	for _, m := range catalog {
		if m.timing != nil {
			out[m.name] = float64(m.timing(&s).Count)
			continue
		}
		m.values(&s, func(v float64, labels ...string) {
			name := m.name
			for _, l := range labels {
				name += " " + l
			}
			out[name] = v
		})
	}
	return out
}
