package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
)

// The end of check says what the user can do. It mentions things to fix above only if there are any.
func TestCheckEndsWithAdvice(t *testing.T) {
	slow := neli.Timing{Count: 1, Sum: 2.5, Buckets: []neli.TimingBucket{{UpTo: 5 * time.Millisecond}, {UpTo: 2500 * time.Millisecond, Count: 1}}}
	once := neli.Timing{Count: 10, Sum: 3, Buckets: []neli.TimingBucket{{UpTo: 5 * time.Millisecond, Count: 9}, {UpTo: 2500 * time.Millisecond, Count: 10}}}
	for _, tc := range []struct {
		lines       []string
		lease       time.Duration
		trips       neli.Timing
		interrupted bool
		out, err    string
		code        int
	}{
		{lease: 5 * time.Second, trips: once, out: "should therefore be at least 3.57s"},
		{lease: 3 * time.Second, trips: once, out: "\nto fix: --timeout 3s is less than that\n", code: codeDoubts},
		{lease: 10 * time.Second, trips: slow, out: "should therefore be at least 10s"},
		{lease: 5 * time.Second, trips: slow, out: "\nto fix: --timeout 5s is less than four round trips: nobody would claim a role", code: codeDoubts},
		{lines: []string{"to fix: x"}, out: "to fix: x\n", err: "fix what is listed above", code: codeFailure},
		{lines: []string{"differs: x"}, out: "differs: x\n", err: "no error: try a longer --for", code: codeFailure},
		{lines: []string{"differs: x"}, interrupted: true, out: "differs: x\n", err: "check: interrupted before a written record came back", code: codeFailure},
		{interrupted: true, err: "check: interrupted before a written record came back", code: codeFailure},
		{err: "no error: try a longer --for", code: codeFailure},
	} {
		var out strings.Builder
		f := &findings{lines: tc.lines, lease: tc.lease}
		for _, line := range tc.lines {
			if strings.HasPrefix(line, "to fix: ") {
				f.doubts++
			}
		}
		err := f.conclude(&out, tc.trips, tc.interrupted)
		require.Contains(t, out.String(), tc.out)
		if tc.code == 0 {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, tc.err)
		e, ok := err.(exit)
		require.Equal(t, tc.code == codeDoubts, ok && e.code == codeDoubts)
	}
}

// neli check fails if it cannot print what it has found.
func TestCheckKeepsTheFirstErrorOfWriting(t *testing.T) {
	w := &checkedWriter{Writer: failing{"disk full", "closed"}}
	for range 2 {
		_, err := fmt.Fprintln(w, "a line")
		require.Error(t, err)
	}
	require.EqualError(t, w.err, "disk full")
}

// failing is a writer that fails with each of these in turn.
type failing []string

func (f failing) Write([]byte) (int, error) {
	err := errors.New(f[0])
	copy(f, f[1:])
	return 0, err
}

// A cloud service is recognised by the names of its hosts, and a broker on the user's own machines
// by settings that Kafka does not have.
func TestKindOfBroker(t *testing.T) {
	for _, c := range []struct {
		id      string
		host    string
		setting string
		want    string
	}{
		{"", "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com", "", "Amazon MSK"},
		{"", "boot-abc.c3.kafka-serverless.eu-west-1.amazonaws.com:9098", "", "Amazon MSK Serverless"},
		{"lkc-5v8o", "kafka-1:9092", "", "Confluent Cloud"},
		{"", "pkc-1.eu-central-1.aws.confluent.cloud:9092", "confluent.tier.enable", "Confluent Cloud"},
		{"", "kafka-1:9092", "confluent.tier.enable", "Confluent Platform"},
		{"", "mine.servicebus.windows.net:9093", "", "Azure Event Hubs"},
		{"vci_abc", "10.0.0.1:9092", "", "WarpStream"},
		{"redpanda.1", "10.0.0.1:9092", "", "Redpanda"},
		{"", "10.0.0.1:9092", "redpanda.remote.read", "Redpanda"},
		{"MkU3OEVBNTcwNTJENDM2Qg", "kafka.example.com:9092", "retention.ms", "Apache Kafka, or a broker that does not say what it is"},
	} {
		require.Equal(t, c.want, kindOfBroker(c.id, []string{c.host}, []string{c.setting}), c)
	}
}

// An error about a broker names the setting to look at.
func TestUnreachableBrokers(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("no such host")}
	for _, c := range []struct {
		probe kafka.BrokerProbe
		says  string
	}{
		{kafka.BrokerProbe{Err: fmt.Errorf("unable to dial: %w", dial), Failed: 3, Tried: 3}, "cannot be reached at kafka-7:9092, which it advertises: unable to dial: dial: no such host; look at the broker's advertised.listeners"},
		{kafka.BrokerProbe{Err: context.DeadlineExceeded, Failed: 3, Tried: 3}, "cannot be reached at kafka-7:9092"},
		{kafka.BrokerProbe{Err: errors.New("EOF"), Failed: 1, Tried: 3}, "served only 2 of the 3 connections that a member opens: look at the broker's max.connections"},
		{kafka.BrokerProbe{Err: errors.New("EOF"), Failed: 3, Tried: 3}, "does not serve this client: EOF"},
	} {
		c.probe.ID, c.probe.Address = 7, "kafka-7:9092"
		require.Contains(t, unreachable(c.probe, neli.Config{}), c.says)
	}
}
