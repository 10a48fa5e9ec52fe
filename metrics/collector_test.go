package metrics

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

// join starts a member of the group "app" that pulses in the background, with 5 roles.
func join(t *testing.T, b *nelitest.Broker, name string, change func(*neli.Config)) *neli.Neli {
	t.Helper()
	cfg := neli.Config{LeaderGroupID: "app", Name: name, Provider: b.Provider(name), Roles: 5}
	if change != nil {
		change(&cfg)
	}
	n, err := neli.New(cfg)
	require.NoError(t, err)
	if !cfg.Observer {
		_, err = n.Background(func() { time.Sleep(10 * time.Millisecond) })
		require.NoError(t, err)
	}
	return n
}

func bubble(t *testing.T, test func(t *testing.T, b *nelitest.Broker)) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		defer b.Close()
		test(t, b)
	})
}

// scraped returns the metrics of one scrape of a Neli, by name and labels.
func scraped(t *testing.T, n *neli.Neli, opts ...Option) map[string]*dto.Metric {
	t.Helper()
	c, err := NewCollector(n, opts...)
	require.NoError(t, err)
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(c))
	families, err := r.Gather()
	require.NoError(t, err)
	out := map[string]*dto.Metric{}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			out[f.GetName()+" "+strings.Join(labels, " ")] = m
		}
	}
	return out
}

func value(t *testing.T, of map[string]*dto.Metric, name string) float64 {
	t.Helper()
	m := of[name]
	require.NotNil(t, m, "%s is not among what is shown", name)
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount())
	}
	return m.Gauge.GetValue()
}

// A leader, a follower and an observer show what they know, by Prometheus's conventions.
func TestCollector(t *testing.T) {
	bubble(t, func(t *testing.T, b *nelitest.Broker) {
		a := join(t, b, "a", nil)
		defer a.Close()
		time.Sleep(20 * time.Second)
		o := join(t, b, "o", func(cfg *neli.Config) { cfg.Observer = true })
		defer o.Close()
		time.Sleep(20 * time.Second)

		got := scraped(t, a)
		for name, want := range map[string]float64{
			"neli_is_leader group=app":                                                       1,
			"neli_roles_led group=app":                                                       5,
			"neli_roles group=app status=held":                                               5,
			"neli_roles group=app status=vacant":                                             0,
			"neli_roles group=app status=unknown":                                            0,
			"neli_members group=app":                                                         1,
			"neli_terms_started_total group=app":                                             5,
			"neli_terms_ended_total group=app reason=not_pulsed":                             0,
			"neli_heartbeat_timeout_seconds group=app":                                       5,
			"neli_append_failures_total group=app":                                           0,
			"neli_records_read_total group=app kind=malformed":                               0,
			"neli_healthy group=app":                                                         1,
			"neli_state group=app state=live":                                                1,
			"neli_state group=app state=failed":                                              0,
			"neli_info group=app mode=exclusive name=a nomination=open version=" + version(): 1,
		} {
			require.Equal(t, want, value(t, got, name), name)
		}
		require.InDelta(t, 0.5, value(t, got, "neli_evidence_age_seconds group=app"), 0.6)
		appended := value(t, got, "neli_records_appended_total group=app")
		require.Greater(t, appended, 30.0)
		require.InDelta(t, appended, value(t, got, "neli_record_round_trip_seconds group=app"), 2)
		require.InDelta(t, appended, value(t, got, "neli_records_read_total group=app kind=valid"), 2)

		got = scraped(t, o)
		require.Zero(t, value(t, got, "neli_is_leader group=app"))
		require.Equal(t, 5.0, value(t, got, "neli_roles group=app status=held"))
		require.Equal(t, 1.0, value(t, got, "neli_members group=app"))

		for _, n := range []*neli.Neli{a, o} {
			c, err := NewCollector(n, WithRoles(3), WithLabels(prometheus.Labels{"zone": "b"}))
			require.NoError(t, err)
			problems, err := testutil.CollectAndLint(c)
			require.NoError(t, err)
			require.Empty(t, problems)
		}
	})
}

// The number of series does not grow with roles. WithRoles adds two for each role that the group has.
func TestSeriesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, b *nelitest.Broker) {
		a := join(t, b, "a", func(cfg *neli.Config) { cfg.Roles, cfg.Partitions = 20_000, 7 })
		defer a.Close()
		time.Sleep(20 * time.Second)
		require.Equal(t, 20_000, a.Stats().Led)
		series, before := 0, len(scraped(t, a))
		for _, m := range scraped(t, a) {
			series++
			if h := m.Histogram; h != nil {
				series += len(h.Bucket) + 2 // +Inf, sum and count
			}
		}
		require.Less(t, series, 140, "four histograms have 15 each; nothing grows with roles")
		require.NoError(t, a.SetRoles(10_004))
		got := scraped(t, a, WithRoles(MaxRoles))
		require.Len(t, got, before+2*MaxRoles)
		require.Equal(t, 1.0, value(t, got, "neli_role_leader group=app role=999"))
		token, ok := a.Token(3)
		require.True(t, ok)
		require.Equal(t, float64(token), value(t, got, "neli_role_token group=app role=3"))
		require.NoError(t, a.SetRoles(2))
		require.Len(t, scraped(t, a, WithRoles(MaxRoles)), before+2*2)
	})
}

// A vacancy, a drain and a lost term show in the metrics that are named after them.
func TestCollectorOfChanges(t *testing.T) {
	bubble(t, func(t *testing.T, b *nelitest.Broker) {
		// The topic is not new: its roles are not known to be vacant at the start.
		require.NoError(t, b.CreateTopic("app.neli", 1))
		require.NoError(t, b.ChangeLeader("app.neli", 0, 0))
		a := join(t, b, "a", nil)
		defer a.Close()
		o := join(t, b, "o", func(cfg *neli.Config) { cfg.Observer = true })
		defer o.Close()
		time.Sleep(20 * time.Second)
		require.NoError(t, a.StepDown(t.Context()))
		time.Sleep(20 * time.Second)
		got := scraped(t, a)
		require.Equal(t, 5.0, value(t, got, "neli_terms_ended_total group=app reason=stepped_down"))
		require.Equal(t, 10.0, value(t, got, "neli_terms_started_total group=app"))
		require.Equal(t, 1.0, value(t, got, "neli_drain_duration_seconds group=app"))
		require.Equal(t, 5.0, value(t, got, "neli_vacancy_duration_seconds group=app"))
		require.InDelta(t, 5*15, value(t, got, "neli_leaderless_seconds_total group=app"), 1, "for three T nobody led")

		vacancies := got["neli_vacancy_duration_seconds group=app"].Histogram
		require.InDelta(t, 5*15, vacancies.GetSampleSum(), 1)
		var bounds []float64
		for _, bucket := range vacancies.Bucket {
			bounds = append(bounds, bucket.GetUpperBound())
			want := uint64(0)
			if bucket.GetUpperBound() > 16 {
				want = 5
			}
			require.Equal(t, want, bucket.GetCumulativeCount())
		}
		require.Equal(t, []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60}, bounds)

		b.CutOff("a", nelitest.LinkAll)
		time.Sleep(70 * time.Second)
		got = scraped(t, a)
		require.Equal(t, 5.0, value(t, got, "neli_terms_ended_total group=app reason=lapsed"))
		require.Positive(t, value(t, got, "neli_append_failures_total group=app"))
		require.InDelta(t, 70, value(t, got, "neli_record_age_seconds group=app"), 2)
		require.InDelta(t, 70, value(t, got, "neli_cut_off_seconds group=app"), 2)
		require.Zero(t, value(t, got, "neli_leader_silence_seconds group=app"), "it does not know who leads")
		require.InDelta(t, 5*15, value(t, got, "neli_leaderless_seconds_total group=app"), 1, "what it cannot know does not count")
		require.Equal(t, 5.0, value(t, got, "neli_roles group=app status=vacant"))
		require.NoError(t, a.Close())
		require.Equal(t, 1.0, value(t, scraped(t, a), "neli_state group=app state=closed"), "it can be asked all the same")
	})
}

// Non-exclusive mode shows what it knows, and has no series for the rest.
func TestCollectorOfNonExclusiveMode(t *testing.T) {
	bubble(t, func(t *testing.T, b *nelitest.Broker) {
		a := join(t, b, "a", func(cfg *neli.Config) { cfg.Mode = neli.NonExclusive })
		defer a.Close()
		time.Sleep(time.Minute)
		got := scraped(t, a, WithRoles(5))
		require.Equal(t, 1.0, value(t, got, "neli_is_leader group=app"))
		require.Equal(t, 5.0, value(t, got, "neli_roles_led group=app"))
		require.Equal(t, 1.0, value(t, got, "neli_role_leader group=app role=4"))
		for name := range got {
			family, _, _ := strings.Cut(name, " ")
			i := slices.IndexFunc(catalog, func(m metric) bool { return m.name == family })
			require.False(t, catalog[i].exclusive, name)
		}
	})
}

// Labels distinguish several Nelis of one process. Wrong options are refused, with one error for all.
func TestOptions(t *testing.T) {
	bubble(t, func(t *testing.T, b *nelitest.Broker) {
		a, d := join(t, b, "a", nil), join(t, b, "d", nil)
		defer a.Close()
		defer d.Close()
		r := prometheus.NewRegistry()
		for name, n := range map[string]*neli.Neli{"a": a, "d": d} {
			c, err := NewCollector(n, WithLabels(prometheus.Labels{"part": name}), WithLabels(prometheus.Labels{"zone": "1"}))
			require.NoError(t, err)
			require.NoError(t, r.Register(c))
		}
		same, err := NewCollector(a, WithLabels(prometheus.Labels{"part": "a", "zone": "1"}))
		require.NoError(t, err)
		require.ErrorAs(t, r.Register(same), &prometheus.AlreadyRegisteredError{})

		for below, ok := range map[int]bool{-1: false, 0: false, 1: true, MaxRoles: true, MaxRoles + 1: false} {
			_, err = NewCollector(a, WithRoles(below))
			require.Equal(t, ok, err == nil, strconv.Itoa(below))
		}
		_, err = NewCollector(a, WithRoles(0), WithLabels(prometheus.Labels{"reason": "x", "group": "y", "0": "z", "__a": "", "zone": "\xff"}))
		for _, part := range []string{"WithRoles: 0", `"reason"`, `"group"`, `"0"`, `"__a"`, `"zone"`} {
			require.ErrorContains(t, err, part)
		}
		_, err = NewCollector(nil)
		require.ErrorContains(t, err, "n is nil")
	})
}
