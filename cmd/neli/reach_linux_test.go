package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sys/unix"
)

// observing lists the verbs that only watch a group, with the arguments that they need.
var observing = [][]string{{"status"}, {"watch"}, {"transfer", "0", "x"}, {"step-down"}, {"check"}}

// If the topic is missing, one sentence says so at once and names what creates it.
func TestMissingTopic(t *testing.T) {
	c := broker(t)
	for _, args := range observing {
		began := time.Now()
		p := neli(t, c, args...)
		require.Equal(t, 3, p.code(), args)
		require.Equal(t, "neli: topic jobs.neli is missing; neli run creates it\n", complaints(p), args)
		require.Empty(t, p.output(), args)
		require.Less(t, time.Since(began), 10*time.Second, "no time-out was waited for")
	}
}

// complaints returns a process's standard error without the Info lines of its log.
func complaints(p *process) string {
	var out strings.Builder
	for l := range strings.Lines(p.errors.String()) {
		if !strings.Contains(l, "level=INFO") {
			out.WriteString(l)
		}
	}
	return out.String()
}

// If no broker answers, one sentence names it and the reason, within a limited time.
func TestNoBroker(t *testing.T) {
	for _, args := range observing {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			p := neli(t, nil, args...)
			require.Equal(t, 5, p.code(), args)
			said := complaints(p)
			require.Equal(t, 1, strings.Count(said, "\n"), said)
			require.Regexp(t, `^neli: no broker reached at 127.0.0.1:1 within 10s: .*connection refused`, said)
		})
	}
}

// A verb that holds nothing ends by a signal as most commands do. So a script sees that it was
// interrupted, and takes that neither for an answer nor for a fault.
func TestSignalEndsVerbsThatHoldNothing(t *testing.T) {
	for _, args := range observing[:4] {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			p := neli(t, nil, args...)
			p.logs("level=INFO")
			p.signal(unix.SIGINT)
			code := p.code()
			require.Empty(t, complaints(p))
			if args[0] == "watch" {
				require.Equal(t, 0, code)
				return
			}
			status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
			require.True(t, ok)
			require.Equal(t, syscall.SIGINT, status.Signal(), "exit code %d", code)
		})
	}
}

// A topic full of records that do not belong to the protocol has no effect.
func TestRubbishInTheTopicHasNoEffect(t *testing.T) {
	c := brokerWith(t, "jobs.neli")
	writes, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("jobs.neli"))
	require.NoError(t, err)
	defer writes.Close()
	for range 500 {
		writes.Produce(context.Background(), kgo.StringRecord("\x1b[2J rubbish"), nil)
	}
	require.NoError(t, writes.Flush(context.Background()))
	for args, code := range map[string]int{"status": 4, "step-down --wait 5s": 124} {
		p := neli(t, c, strings.Fields(args)...)
		require.Equal(t, code, p.code(), args)
		require.Contains(t, p.errors.String(), "skipping malformed records")
		require.NotContains(t, p.errors.String(), "\x1b")
	}
	holder := neli(t, c, "run", "--timeout", long.String(), "--name", "one", "--", "sh", "-c", family)
	holder.says("child", 1)
	require.Equal(t, 0, neli(t, c, "status").code())
}

// status lists all members by names that transfer accepts. It does not list itself or another status.
func TestStatusNamesAllMembers(t *testing.T) {
	c := brokerWith(t, "jobs.neli")
	one := neli(t, c, "run", "--timeout", long.String(), "--name", "one", "--", "sh", "-c", family)
	one.says("child", 1)
	neli(t, c, "run", "--name", "two", "--", "sh", "-c", family)
	neli(t, c, "run", "--name", "three", "--", "sh", "-c", family)
	require.Eventually(t, func() bool { return len(membersOf(t, neli(t, c, "status", "--json"))) == 3 }, soon, time.Millisecond, "they have started")
	// Three right answers in a row, so that the result does not depend on when the members last announced
	// themselves. On a busy machine a member may answer too late.
	inARow := 0
	require.Eventually(t, func() bool {
		other := neli(t, c, "status")
		named := membersOf(t, neli(t, c, "status", "--json"))
		whole := other.code() == 0 && !strings.Contains(strings.Join(other.output(), "\n"), "there may be more")
		if inARow++; !whole || !slices.Equal([]string{"one", "three", "two"}, named) {
			inARow = 0
		}
		return inARow == 3
	}, soon, time.Millisecond, "not all members are named")
}

func membersOf(t *testing.T, p *process) (names []string) {
	t.Helper()
	p.code()
	var status struct{ Members []struct{ Name string } }
	require.NoError(t, json.Unmarshal([]byte(strings.Join(p.output(), "")), &status))
	for _, m := range status.Members {
		names = append(names, m.Name)
	}
	return names
}

// Each error has one prefix, names the flag or argument, and says what is wrong with it.
func TestBadArguments(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for args, want := range map[string]string{
		"status --timeout 1ms":      `neli: --timeout: "1ms" must be at least 100ms`,
		"status --roles -1":         `neli: --roles -1: must be at least 1`,
		"status --loglevel x":       `neli: unknown flag: --loglevel`,
		"status --log-level x":      `neli: --log-level: "x" must be debug, info, warn or error`,
		"status --config " + none:   `neli: --config: open ` + none,
		"status --topic a/b":        `neli: --topic: "a/b" must be`,
		"transfer":                  `neli: transfer: 0 arguments given: must be the member`,
		"transfer 1 2 3":            `neli: transfer: 3 arguments given: must be the member`,
		"transfer 5000000000 x":     `neli: role "5000000000": must be a number from 0 to 999999`,
		"transfer --role 1000000 x": `neli: --role 1000000: must be a number from 0 to 999999`,
		"step-down --wait 0s":       `neli: --wait 0s: must be positive`,
		"check --for -1s":           `neli: --for -1s: must be positive`,
	} {
		p := neliWith(t, append(os.Environ(), "NELI_GROUP=jobs"), strings.Fields(args)...)
		require.Equal(t, 125, p.code(), args)
		require.Contains(t, p.errors.String(), want)
		require.Equal(t, 1, strings.Count(p.errors.String(), "neli: "), p.errors.String())
	}
}

// check tries what the first run needs: each broker at the address that it advertises, and whether the topic can be
// created. Each fault is one sentence that says where to look.
func TestCheckTriesWhatTheFirstRunNeeds(t *testing.T) {
	answer := func(c *kfake.Cluster, key kmsg.Key, change func(kmsg.Response)) {
		c.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			resp := req.ResponseKind()
			change(resp)
			return resp, nil, true
		})
	}
	advertise := func(host string, port int32) func(*kfake.Cluster) {
		return func(c *kfake.Cluster) {
			answer(c, kmsg.Metadata, func(resp kmsg.Response) {
				r := resp.(*kmsg.MetadataResponse)
				b := kmsg.NewMetadataResponseBroker()
				b.Host, b.Port = host, port
				topic := kmsg.NewMetadataResponseTopic()
				topic.Topic, topic.ErrorCode = kmsg.StringPtr("jobs.neli"), kerr.UnknownTopicOrPartition.Code
				r.Brokers, r.Topics = append(r.Brokers, b), append(r.Topics, topic)
			})
		}
	}
	for name, c := range map[string]struct {
		breaks func(*kfake.Cluster)
		says   []string
	}{
		"an address that nobody listens at": {advertise("127.0.0.1", 1), []string{"broker 0 cannot be reached at 127.0.0.1:1, which it advertises", "connection refused", "advertised.listeners"}},
		"a name that is not known":          {advertise("kafka.invalid", 9092), []string{"broker 0 cannot be reached at kafka.invalid:9092", "lookup kafka.invalid", "advertised.listeners"}},
		"too few brokers for the default replication": {func(c *kfake.Cluster) {
			answer(c, kmsg.CreateTopics, func(resp kmsg.Response) {
				topic := kmsg.NewCreateTopicsResponseTopic()
				topic.Topic, topic.ErrorCode = "jobs.neli", kerr.InvalidReplicationFactor.Code
				topic.ErrorMessage = kmsg.StringPtr("only 1 broker(s) are registered")
				r := resp.(*kmsg.CreateTopicsResponse)
				r.Topics = append(r.Topics, topic)
			})
		}, []string{"topic jobs.neli cannot be created", "only 1 broker(s) are registered", "create it by hand"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := broker(t)
			c.breaks(cluster)
			p := neli(t, cluster, "check", "--for", "1s")
			require.Equal(t, 3, p.code())
			said := complaints(p)
			require.Equal(t, 1, strings.Count(said, "\n"), said)
			require.Contains(t, said, "neli: topic jobs.neli is missing, and neli run cannot create it: ")
			for _, text := range c.says {
				require.Contains(t, said, text)
			}
		})
	}
}
