package neli_test

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// logLine is one line of a log.
type logLine struct {
	level slog.Level
	text  string
	attrs map[string]slog.Value
}

// logLines keeps lines with all their attributes. It is a slog.Handler.
type logLines struct {
	*kept
	with []slog.Attr
}

type kept struct {
	mu    sync.Mutex
	lines []logLine
}

func newLogLines() logLines { return logLines{kept: &kept{}} }

func (l logLines) Enabled(context.Context, slog.Level) bool { return true }
func (l logLines) WithGroup(string) slog.Handler            { return l }
func (l logLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logLines{l.kept, append(slices.Clone(l.with), attrs...)}
}

func (l logLines) Handle(_ context.Context, r slog.Record) error {
	line := logLine{r.Level, r.Message, map[string]slog.Value{}}
	for _, a := range l.with {
		line.attrs[a.Key] = a.Value
	}
	r.Attrs(func(a slog.Attr) bool {
		line.attrs[a.Key] = a.Value
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

// said returns the lines with this text.
func (l logLines) said(text string) (out []logLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if line.text == text {
			out = append(out, line)
		}
	}
	return out
}

func (l logLines) all() []logLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// logsTo makes a member log to l.
func logsTo(l logLines) func(*neli.Config) {
	return func(cfg *neli.Config) { cfg.Nomination, cfg.Logger = neli.NominationOpen, slog.New(l) }
}

var digits = regexp.MustCompile(`[0-9]`)

// Messages are constant, so that they can be searched for and counted. Data about a process, role
// or record is in attributes. All lines have the attributes group and name.
func TestLogLinesHaveTheirDataInAttributes(t *testing.T) {
	simulateWith(t, nelitest.Options{}, roles(3), func(c *cluster) {
		lines := newLogLines()
		all := func(cfg *neli.Config) {
			logsTo(lines)(cfg)
			cfg.Healthy = func() error { return nil }
			cfg.Requests = func(neli.Request) error { return nil }
		}
		a := c.Work("member-a", all)
		c.Leader(0, time.Minute)
		c.Work("member-b", all)
		c.Work("member-c", func(cfg *neli.Config) { all(cfg); cfg.Nomination = neli.NominationAssigned })
		c.Pass(20 * time.Second)
		_, err := c.Broker.Inject("app.neli", 0, []byte("nonsense"))
		require.NoError(t, err)
		c.Broker.CutOff("member-a", nelitest.LinkAll)
		c.Pass(20 * time.Second)
		c.Broker.Restore("member-a", nelitest.LinkAll)
		c.Pass(20 * time.Second)
		c.Broker.Suspend("member-b")
		c.Pass(20 * time.Second)
		c.Broker.Resume("member-b")
		c.Broker.Stop()
		c.Pass(20 * time.Second)
		c.Broker.Start()
		c.Pass(20 * time.Second)
		id := a.ID()
		require.NoError(t, a.Close())
		c.Pass(20 * time.Second)

		texts := map[string]bool{}
		for _, line := range lines.all() {
			texts[line.text] = true
			require.NotRegexp(t, digits, line.text)
			for _, id := range []string{"member-", "app.neli", id} {
				require.False(t, strings.Contains(line.text, id), line.text)
			}
			require.Equal(t, "app", line.attrs["group"].String(), line.text)
			require.Contains(t, line.attrs["name"].String(), "member-", line.text)
			if strings.HasPrefix(line.text, "leader ") {
				require.Contains(t, line.attrs, "reason", line.text)
				several := ""
				if _, yes := line.attrs["terms"]; yes {
					several = "s"
				}
				require.Contains(t, line.attrs, "partition"+several, line.text)
				require.Contains(t, line.attrs, "token"+several, line.text)
			}
		}
		for _, text := range []string{"starting", "created the leader topic", "leader acquired", "leader revoked",
			"leader fenced", "skipping malformed records; logged once", "cannot read the leader topic, retrying",
			"reading the leader topic again", "cannot write to the leader topic, retrying", "writing to the leader topic again",
			"cannot check the leader topic, retrying", "brokers answer again", "another process leads"} {
			require.Contains(t, texts, text)
		}
	})
}

// The beginning and the end of an outage are logged.
func TestOutageIsLoggedAtItsBeginningAndEnd(t *testing.T) {
	simulateWith(t, nelitest.Options{}, nil, func(c *cluster) {
		lines := newLogLines()
		c.Work("a", logsTo(lines))
		c.Leader(0, time.Minute)
		c.Broker.Stop()
		c.Pass(12 * time.Second)
		require.Empty(t, lines.said("writing to the leader topic again"))
		c.Broker.Start()
		c.Leader(0, time.Minute)
		for text, least := range map[string]time.Duration{"reading the leader topic again": 9 * time.Second, "writing to the leader topic again": 5 * time.Second} {
			again := lines.said(text)
			require.Len(t, again, 1, text)
			require.Equal(t, slog.LevelInfo, again[0].level)
			after := again[0].attrs["after"].Duration()
			require.GreaterOrEqual(t, after, least, text)
			require.Less(t, after, 20*time.Second, text)
		}
		c.Pass(time.Minute)
		require.Len(t, lines.said("reading the leader topic again"), 1, "once")
	})
}

// A starting process logs what it waits for, and says so if no broker answers.
func TestStartLogsWhatItWaitsFor(t *testing.T) {
	simulateWith(t, nelitest.Options{}, nil, func(c *cluster) {
		c.Aged(1)
		c.Broker.Stop()
		lines := newLogLines()
		a := c.Work("a", func(cfg *neli.Config) {
			logsTo(lines)(cfg)
			cfg.KafkaConfig = neli.KafkaConfigMap{"bootstrap.servers": "wrong:9092"}
		})
		c.Pass(time.Minute)
		require.False(t, a.Stats().Reached)
		none := lines.said("no broker reached, retrying")
		require.GreaterOrEqual(t, len(none), 4, "again and again")
		require.LessOrEqual(t, len(none), 6, "but not in a storm")
		for _, line := range none {
			require.Equal(t, slog.LevelWarn, line.level)
			require.Equal(t, "wrong:9092", line.attrs["brokers"].String())
		}
		require.Empty(t, lines.said("cannot find the leader topic, retrying"))
		c.Broker.Start()
		c.Leader(0, time.Minute)
		require.True(t, a.Stats().Reached)
		require.Len(t, lines.said("brokers answer again"), 1)
		waits := lines.said("waiting for the leases of others")
		require.Len(t, waits, 1)
		require.InDelta(t, 5, waits[0].attrs["at_most"].Duration().Seconds(), 1)
		require.Equal(t, "the leader epoch is not 0: a broker was away", waits[0].attrs["why"].String())

		b := newLogLines()
		c.Work("b", logsTo(b))
		c.Pass(10 * time.Second)
		require.Empty(t, b.said("waiting for the leases of others"), "it has heard of them at once")
	})
}

// A follower logs who leads, once for each role.
func TestFollowersLogWhoLeads(t *testing.T) {
	simulateWith(t, nelitest.Options{}, roles(2), func(c *cluster) {
		lines := newLogLines()
		none := func(cfg *neli.Config) { open(cfg); cfg.DisableRebalance = true }
		a := c.Work("a", none)
		c.Leader(0, time.Minute)
		c.Leader(1, time.Minute)
		c.Work("b", func(cfg *neli.Config) { logsTo(lines)(cfg); cfg.DisableRebalance = true })
		c.Pass(30 * time.Second)
		leads := lines.said("another process leads")
		require.Len(t, leads, 2)
		for role, line := range leads {
			require.Equal(t, int64(role), line.attrs["role"].Int64())
			require.Equal(t, "a", line.attrs["leader"].String())
			token, ok := a.Token(role)
			require.True(t, ok)
			require.Equal(t, token, line.attrs["token"].Int64())
		}
		require.NoError(t, a.Close())
		c.Pass(time.Minute)
		require.Len(t, lines.said("another process leads"), 2, "b's own terms are told as events")
	})
}

// With many roles a follower logs numbers instead of names.
func TestFollowersOfManyRolesLogNumbers(t *testing.T) {
	simulateWith(t, nelitest.Options{}, func(c *cluster) { c.Roles, c.Period = 1000, time.Second }, func(c *cluster) {
		lines := newLogLines()
		c.Work("a", open)
		c.Leader(999, time.Minute)
		c.Work("b", open)
		c.Work("c", logsTo(lines))
		c.Pass(5 * time.Minute)
		require.Empty(t, lines.said("another process leads"))
		counts := lines.said("other processes lead")
		require.NotEmpty(t, counts)
		require.LessOrEqual(t, len(counts), 10)
		last := counts[len(counts)-1]
		require.Equal(t, int64(2), last.attrs["leaders"].Int64())
		require.InDelta(t, 667, float64(last.attrs["count"].Int64()), 2)
		require.Regexp(t, `^[ab]: 33\d, [ab]: 33\d$`, last.attrs["largest"].String())
	})
}

// A line about several roles names them, and writes the reason as metrics and JSON do.
func TestLogLinesNameTheirRoles(t *testing.T) {
	simulateWith(t, nelitest.Options{}, roles(6), func(c *cluster) {
		lines := newLogLines()
		a := c.Work("a", logsTo(lines))
		c.Leader(5, 2*silence)
		c.Pass(10 * time.Second)
		require.NoError(t, a.StepDown(c.Context()))
		acquired, revoked := lines.said("leader acquired"), lines.said("leader revoked")
		require.NotEmpty(t, revoked)
		for _, line := range append(acquired, revoked...) {
			require.Equal(t, "0-5", line.attrs["roles"].String())
			require.Equal(t, int64(6), line.attrs["count"].Int64())
		}
		require.Equal(t, "stepped_down", revoked[0].attrs["reason"].String())
		text, err := neli.ReasonSteppedDown.MarshalText()
		require.NoError(t, err)
		require.Equal(t, neli.ReasonSteppedDown.String(), string(text))
	})
}

// The first line has the settings in which members may differ, and those that differ from the defaults.
func TestFirstLineNamesTheSettings(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*neli.Config)
		shown  []string
	}{
		"defaults": {func(*neli.Config) {}, nil},
		"set": {func(cfg *neli.Config) {
			cfg.TokenBase, cfg.DrainTimeout, cfg.HeartbeatInterval = 7, time.Second, 500*time.Millisecond
		},
			[]string{"tokenBase", "drainTimeout", "heartbeatInterval"}},
		"observer": {observer, []string{"observer"}},
	} {
		simulate(t, nelitest.Options{}, func(cl *cluster) {
			lines := newLogLines()
			cl.Join("a", func(cfg *neli.Config) {
				logsTo(lines)(cfg)
				cfg.MaxPulseInterval, cfg.DrainTimeout, cfg.HeartbeatInterval, cfg.MaxClockDrift = 0, 0, 0, 0
				c.change(cfg)
			})
			cl.Pass(time.Second)
			var more []string
			for attr := range lines.said("starting")[0].attrs {
				if !slices.Contains([]string{"group", "name", "topic", "mode", "nomination", "roles", "heartbeatTimeout", "kafka"}, attr) {
					more = append(more, attr)
				}
			}
			require.ElementsMatch(cl, c.shown, more, name)
		})
	}
}
