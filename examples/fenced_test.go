package examples_test

import (
	"context"
	"database/sql"
	"fmt"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/lab/dbtest"
)

// report is a report of the programs: its number, and the token of the leader that wrote it.
type report struct{ number, token int }

func testFencedSQL(t *testing.T, f flags) {
	dsn := dbtest.PostgreSQL(t)
	former, latter := tryFenced(t, f, "fenced-sql", []string{"-dsn", dsn},
		`stored report %d with token %d$`, `report 2 is not stored: fence: a later term has taken over: .* its token is (\d+), this one's is (\d+)$`)
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT number, token FROM report ORDER BY number")
	require.NoError(t, err)
	var got []report
	for rows.Next() {
		var r report
		require.NoError(t, rows.Scan(&r.number, &r.token))
		got = append(got, r)
	}
	require.NoError(t, rows.Err())
	requireReports(t, got, former, latter)
}

func testFencedKafka(t *testing.T, f flags) {
	former, latter := tryFenced(t, f, "fenced-kafka", nil,
		`committed report %d with token %d$`, `report 2 is not known to be committed: fence: the producer was refused`)
	client, err := kgo.NewClient(kgo.SeedBrokers(f.bootstrap), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeTopics(f.fresh+".reports"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var got []report
	for len(got) < 3 {
		fetches := client.PollFetches(ctx)
		require.NoError(t, fetches.Err0())
		fetches.EachRecord(func(record *kgo.Record) {
			var r report
			_, err := fmt.Sscan(string(record.Value), &r.number, &r.token)
			require.NoError(t, err)
			got = append(got, r)
		})
	}
	requireReports(t, got, former, latter)
}

// tryFenced suspends a leader while it prepares its second report, until another leader has written that
// report. It returns both tokens.
func tryFenced(t *testing.T, f flags, example string, more []string, wrote, refused string) (former, latter int) {
	s := newStage(t)
	more = append(more, "-takes", "4s") // long, so that even a busy machine suspends the leader before its report is ready
	anna := s.start(example, "anna", f.of("anna", more...)...)
	_, m := s.await(anna, `leads, with token (\d+); 0 reports are there$`)
	former = number(t, m[0])
	s.await(anna, fmt.Sprintf(wrote, 1, former))
	s.await(anna, `prepares report 2$`)
	anna.suspend()
	boris := s.start(example, "boris", f.of("boris", more...)...)
	_, m = s.await(boris, `leads, with token (\d+); 1 reports are there$`)
	latter = number(t, m[0])
	require.Greater(t, latter, former)
	s.await(boris, fmt.Sprintf(wrote, 2, latter))
	anna.signal(syscall.SIGCONT)
	_, tokens := s.await(anna, refused)
	if len(tokens) > 0 {
		require.Equal(t, []string{fmt.Sprint(latter), fmt.Sprint(former)}, tokens)
	}
	s.await(boris, fmt.Sprintf(wrote, 3, latter))
	s.during(time.Second, time.Now())
	require.Equal(t, 1, s.said(anna, `leads, with token`), "a stale leader works on")
	for _, p := range []*program{anna, boris} {
		p.signal(syscall.SIGTERM)
		p.ends()
	}
	return former, latter
}

// requireReports requires each report once and in order, and that the former leader wrote only the first one.
func requireReports(t *testing.T, got []report, former, latter int) {
	t.Helper()
	require.GreaterOrEqual(t, len(got), 3)
	for i, r := range got {
		want := report{i + 1, latter}
		if i == 0 {
			want.token = former
		}
		if i < 3 { // anna may lead again once boris has closed
			require.Equal(t, want, r, "%v", got)
		}
		require.Equal(t, i+1, r.number, "%v", got)
	}
}

// The leader prepares a report that takes an hour, and closes only then. The second interrupt ends it.
func TestASecondInterruptEndsAProgramThatCloses(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second))
	require.NoError(t, err)
	t.Cleanup(broker.Close)
	tellSettings(broker)
	f := flags{bootstrap: broker.ListenAddrs()[0], fresh: "interrupted"}
	s := newStage(t)
	anna := s.start("fenced-kafka", "anna", f.of("anna", "-takes", "1h")...)
	s.await(anna, `prepares report 1$`)
	again, deadline := time.NewTicker(10*time.Millisecond), time.After(limit)
	defer again.Stop()
	for ended := false; !ended; {
		_ = anna.Signal(syscall.SIGINT) // fails once it has ended
		select {
		case <-anna.Done():
			ended = true
		case <-again.C: // the program may not have released the signal yet
		case <-deadline:
			t.Fatal("interrupts do not end the program")
		}
	}
	require.Equal(t, "signal: interrupt", anna.State(), "the program ended by itself")
}

// tellSettings lets an in-memory broker say that it verifies transactions, as a real one does.
func tellSettings(broker *kfake.Cluster) {
	broker.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		of := req.(*kmsg.DescribeConfigsRequest).Resources[0]
		if of.ResourceType != kmsg.ConfigResourceTypeBroker {
			return nil, nil, false
		}
		r, setting, value := kmsg.NewDescribeConfigsResponseResource(), kmsg.NewDescribeConfigsResponseResourceConfig(), "true"
		r.ResourceType, r.ResourceName = of.ResourceType, of.ResourceName
		setting.Name, setting.Value = "transaction.partition.verification.enable", &value
		r.Configs = append(r.Configs, setting)
		resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		resp.Resources = append(resp.Resources, r)
		return resp, nil, true
	})
}
