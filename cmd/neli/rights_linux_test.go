package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const password = "hunter2" // of all users

// secured starts a broker in this process with a topic on which each user has these rights only.
func secured(t *testing.T, rights map[string][]kmsg.ACLOperation) *kfake.Cluster {
	t.Helper()
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(1, "jobs.neli"), kfake.Superuser("PLAIN", "admin", password)}
	for user, operations := range rights {
		var acls []kfake.ACL
		for _, operation := range operations {
			acls = append(acls, kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "jobs.neli",
				Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: operation, Allow: true})
		}
		opts = append(opts, kfake.User("PLAIN", user, password, acls...))
	}
	c, err := kfake.NewCluster(opts...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// as writes a file of client properties for a user, and returns its path.
func as(t *testing.T, user string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "client.properties")
	require.NoError(t, os.WriteFile(file, []byte("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username="+user+"\nsasl.password="+password+"\n"), 0o600))
	return file
}

// A user who lacks a right is told at the start which right it is. No output contains a secret.
func TestMissingRights(t *testing.T) {
	c := secured(t, map[string][]kmsg.ACLOperation{"reader": {kmsg.ACLOperationRead}, "writer": {kmsg.ACLOperationWrite}})
	for name, s := range map[string]struct {
		user string
		args []string
		code int
		says string
	}{
		"check without WRITE":  {"reader", []string{"check", "--for", "5s"}, 125, "WRITE"},
		"check without READ":   {"writer", []string{"check", "--for", "5s"}, 125, "READ"},
		"check with all":       {"admin", []string{"check", "--for", "8s"}, 3, "to fix: unsafe setting of the leader topic"}, // one replica
		"run without WRITE":    {"reader", []string{"run", "--", "true"}, 125, "WRITE"},
		"run without READ":     {"writer", []string{"run", "--", "true"}, 125, "READ"},
		"status without WRITE": {"reader", []string{"status"}, 4, "the members could not be asked"}, // and nothing can be learnt from an empty topic
		"status without READ":  {"writer", []string{"status"}, 125, "READ"},
		"watch without READ":   {"writer", []string{"watch"}, 125, "READ"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := neli(t, c, append(s.args[:1:1], append([]string{"--config", as(t, s.user)}, s.args[1:]...)...)...)
			require.Equal(t, s.code, p.code(), "%v", p.errors.String())
			told := strings.Join(p.output(), "\n") + p.errors.String()
			require.Contains(t, told, s.says)
			require.NotContains(t, told, password)
		})
	}
}

// If a missing right ends check, it still prints what it has found, and prints the error once.
func TestCheckPrintsItsFindingsBeforeAnError(t *testing.T) {
	c := secured(t, map[string][]kmsg.ACLOperation{"reader": {kmsg.ACLOperationRead, kmsg.ACLOperationDescribeConfigs}})
	p := neli(t, c, "check", "--for", "5s", "--config", as(t, "reader"))
	require.Equal(t, 125, p.code())
	require.Contains(t, strings.Join(p.output(), "\n"), "to fix: unsafe setting of the leader topic") // one replica
	require.NotContains(t, strings.Join(p.output(), "\n"), "WRITE", "the error is not a finding as well")
	require.Contains(t, p.errors.String(), "WRITE")
}

// A user who may only read is told within seconds that a request to a holder cannot be sent.
func TestTransferNeedsWrite(t *testing.T) {
	c := secured(t, map[string][]kmsg.ACLOperation{"reader": {kmsg.ACLOperationRead}})
	holder := neli(t, c, "run", "--config", as(t, "admin"), "--", "sh", "-c", "echo child $$; exec sleep 1000")
	holder.pid("child", 1)
	p := neli(t, c, "transfer", "--config", as(t, "reader"), "somebody")
	require.Equal(t, 124, p.code())
	require.Contains(t, p.errors.String(), "cannot WRITE topic jobs.neli")
	require.Contains(t, p.errors.String(), "for 3s", "it does not wait for an answer")
}

// A user who may only read is told that even while there is no holder to send a request to.
func TestTransferNeedsWriteEvenWithoutAHolder(t *testing.T) {
	c := secured(t, map[string][]kmsg.ACLOperation{"reader": {kmsg.ACLOperationRead}})
	p := neli(t, c, "transfer", "--config", as(t, "reader"), "somebody")
	require.Equal(t, 124, p.code())
	require.Contains(t, p.errors.String(), "cannot WRITE topic jobs.neli")
	require.Contains(t, p.errors.String(), "for 3s", "it does not wait for somebody to lead")
}
