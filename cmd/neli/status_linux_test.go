package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestStatusAndWatch(t *testing.T) {
	c := brokerWith(t, "jobs.neli")
	require.Equal(t, 4, neli(t, c, "status").code(), "nobody has ever led")

	watching := neli(t, c, "watch")
	lines := neli(t, c, "watch", "--json")
	script := filepath.Join(t.TempDir(), "told")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho told $NELI_STATUS $NELI_ROLES $NELI_HOLDER $NELI_TOKEN\n"), 0o700))
	told := neli(t, c, "watch", "--exec", script)

	holder := neli(t, c, "run", "--timeout", long.String(), "--name", "10.0.0.7\x1b[2J", "--advertise", "10.0.0.7:8080", "--", "sh", "-c", family)
	token := holder.says("token", 1)
	require.Regexp(t, `^held 0 10.0.0.7`, told.says("told", 1))
	said := func(p *process, text string) { // the watchers start at their own pace
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(strings.Join(p.output(), "\n"), text) }, soon, 5*time.Millisecond, "%s", text)
	}
	said(watching, "roles 0 held by")
	said(lines, `"status":"held"`)
	p := neli(t, c, "status")
	require.Equal(t, 0, p.code())
	text := strings.Join(p.output(), "\n")
	require.Contains(t, text, `"10.0.0.7\x1b[2J"`, "a name does not move the cursor")
	require.NotContains(t, text, "\x1b")
	require.Contains(t, text, "held")

	p = neli(t, c, "status", "--json")
	require.Equal(t, 0, p.code())
	var status struct {
		Group     string
		Standings []struct {
			Roles, Status string
			Holder        struct {
				Name, Advertise string
				Token           json.Number
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(strings.Join(p.output(), "")), &status))
	require.Equal(t, "jobs", status.Group)
	require.Equal(t, token, status.Standings[0].Holder.Token.String())
	require.Equal(t, "10.0.0.7:8080", status.Standings[0].Holder.Advertise)
	require.NotContains(t, strings.Join(p.output(), ""), `"since"`, "this process has just come, and does not know")

	holder.signal(15)
	require.Equal(t, 143, holder.code())
	said(watching, "vacant")
	said(lines, `"status":"vacant"`)
	require.Equal(t, "vacant 0", strings.TrimSpace(told.says("told", 2)))
	require.Equal(t, 3, neli(t, c, "status").code())
	require.Equal(t, 125, neli(t, c, "watch", "--exec", "false").code())
	watching.signal(15)
	require.Equal(t, 0, watching.code())
}

func TestCheck(t *testing.T) {
	c := broker(t)
	require.Equal(t, 0, neli(t, c, "run", "--", "true").code())
	p := neli(t, c, "check", "--for", "8s")
	require.Contains(t, []int{0, 3}, p.code())
	text := strings.Join(p.output(), "\n")
	require.Regexp(t, `round trips: \d+, half of them within \S+, all within \S+`, text)
	require.Regexp(t, `T \(--timeout\) should therefore be at least \S+;`, text)
	require.Regexp(t, `(?m)^broker: Apache Kafka, or a broker that does not say what it is; protocol of Kafka .*v\d\.\d.*; brokers up: 1; cluster \S+$`, text)
}

// The members of check do not use the sentinel of the environment.
func TestCheckNeedsNoSentinel(t *testing.T) {
	c := broker(t)
	require.Equal(t, 0, neli(t, c, "run", "--", "true").code())
	with := neliWith(t, append(environment(c), "NELI_SENTINEL=/run/neli/none.sock"), "check", "--for", "6s")
	require.Contains(t, []int{0, 3}, with.code(), with.output()) // on a busy machine check finds other things to fix
	require.NotContains(t, strings.Join(with.output(), "\n")+with.errors.String(), "sentinel")
}

// Check refuses settings that acknowledge records before they are safe, unless --known names them. Of other
// differences it only tells.
func TestCheckRefusesUnsafeSettings(t *testing.T) {
	c := brokerWith(t, "jobs.neli")
	c.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		r := kmsg.NewDescribeConfigsResponseResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, "jobs.neli"
		for name, value := range map[string]string{"write.caching": "true", "redpanda.remote.read": "false", "cleanup.policy": "delete",
			"retention.bytes": "-1", "message.timestamp.type": "LogAppendTime"} {
			s := kmsg.NewDescribeConfigsResponseResourceConfig()
			s.Name, s.Value = name, kmsg.StringPtr(value)
			r.Configs = append(r.Configs, s)
		}
		resp.Resources = append(resp.Resources, r)
		return resp, nil, true
	})
	for known, code := range map[string]int{"": 3, "write.caching": 0} {
		p := neli(t, c, "check", "--timeout", long.String(), "--for", "6s", "--known", known) // with the longer T a busy machine is nothing to fix
		require.Equal(t, code, p.code(), p.output())
		text := strings.Join(p.output(), "\n")
		require.Contains(t, text, "broker: Redpanda; ")
		require.Contains(t, text, "differs: retention.bytes is -1, and the library would create it with 16777216: ")
		require.Contains(t, text, map[int]string{3: "to fix: unsafe setting of the leader topic: write.caching=true: ", 0: "known: write.caching=true: "}[code])
	}
}

// Manual pages and completions are generated from the verbs.
func TestManualAndCompletion(t *testing.T) {
	dir := t.TempDir()
	require.Equal(t, 0, neliWith(t, os.Environ(), "man", dir).code())
	page, err := os.ReadFile(filepath.Join(dir, "neli-run.1"))
	require.NoError(t, err)
	require.Contains(t, string(page), "NELI_TOKEN")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		p := neliWith(t, os.Environ(), "completion", shell)
		require.Equal(t, 0, p.code())
		require.NotEmpty(t, p.output())
	}
	p := neliWith(t, os.Environ(), "version")
	require.Equal(t, 0, p.code())
	require.Contains(t, p.output()[0], "neli ")
}
