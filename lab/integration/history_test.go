package integration

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/internal/history"
)

// proves checks that a topic's records prove what neli history --prove checks.
func proves(t *testing.T, bootstrap, topic, group string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // t's own has ended
	defer cancel()
	props, log := map[string]string{"bootstrap.servers": bootstrap}, slog.New(slog.DiscardHandler)
	producer, err := franz.Provider().Producer(props, log)
	require.NoError(t, err)
	defer producer.Close()
	admin, err := franz.Provider().Admin(producer)
	require.NoError(t, err)
	defer admin.Close()
	reader, err := franz.Provider().LogReader(props, log)
	require.NoError(t, err)
	defer reader.Close()
	var h *history.History
	err = history.Fetch(ctx, admin, reader, topic, group,
		func(read history.Log) (err error) { h, err = history.New(read); return err },
		func(e history.Entry) error { return h.Add(e) })
	require.NoError(t, err)
	r := h.Result()
	assert.Empty(t, r.Faults)
	assert.NotEmpty(t, r.Terms)
	t.Logf("proven by %d records: %d terms, %d waits, %d of them shown by timestamps; %s", r.Records, len(r.Terms), r.Waits, r.Shown, strings.Join(r.Unproven, "; "))
}

// historyTells checks what the command says of two leaders, of which the first was killed and the other one has
// ended: from the topic, and from a file of its records.
func historyTells(t *testing.T, program, bootstrap, group string, leaders ...string) {
	neli := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), program, append([]string{"history"}, args...)...).Output()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	from := []string{"--bootstrap", bootstrap, "--group", group}
	proof := neli(append(from, "--prove")...)
	require.Contains(t, proof, "\nproven: ")
	file := filepath.Join(t.TempDir(), "records.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(neli(append(from, "--records")...)), 0o600))
	require.Equal(t, proof, neli("--file", file, "--prove"))
	var told []string
	for line := range strings.Lines(neli("--file", file, "--json")) {
		var term history.Term
		require.NoError(t, json.Unmarshal([]byte(line), &term))
		require.Less(t, time.Since(term.From), time.Hour)
		told = append(told, term.Name+" "+term.End)
	}
	require.Equal(t, []string{leaders[0] + " " + history.Outlived, leaders[1] + " " + history.Released}, told)
}
