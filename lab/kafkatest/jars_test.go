package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

var quiet = slog.New(slog.DiscardHandler)

func TestFillFetchesOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "neli-kafka", "1.2.3")
	var fetched atomic.Int32
	fetch := func(_ context.Context, to string) error {
		fetched.Add(1)
		assert.NotEqual(t, dir, to, "an unfinished download must not be found in place")
		return os.WriteFile(filepath.Join(to, "a.jar"), []byte("a"), 0o644)
	}
	// The lock belongs to an open file, so it excludes goroutines from each other just like processes.
	var g errgroup.Group
	for range 8 {
		g.Go(func() error { return fill(t.Context(), dir, fetch, quiet) })
	}
	require.NoError(t, g.Wait())
	assert.EqualValues(t, 1, fetched.Load())
	assert.True(t, filled(dir))
	assert.FileExists(t, filepath.Join(dir, "a.jar"))
}

func TestFillAfterFailure(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "1.2.3")
	require.NoError(t, os.Mkdir(dir, 0o755), "left by someone, incomplete")
	broken := errors.New("broken")
	err := fill(t.Context(), dir, func(context.Context, string) error { return broken }, quiet)
	require.ErrorIs(t, err, broken)
	assert.False(t, filled(dir))
	left, err := filepath.Glob(filepath.Join(parent, "*download*"))
	require.NoError(t, err)
	assert.Empty(t, left)

	require.NoError(t, fill(t.Context(), dir, func(context.Context, string) error { return nil }, quiet))
	assert.True(t, filled(dir))
}

func TestFillWaitsNoLongerThanItsContext(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "1.2.3")
	unlock, err := lock(t.Context(), dir+".lock")
	require.NoError(t, err)
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = fill(ctx, dir, nil, quiet)
	assert.ErrorIs(t, err, context.Canceled)
}

// A process that was killed during its download has left an unfinished directory.
func TestFillRemovesAnUnfinishedDownload(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "1.2.3")
	var left string
	broken := func(_ context.Context, to string) error {
		left = to
		return errors.New("broken")
	}
	require.Error(t, fill(t.Context(), dir, broken, quiet))
	require.NoDirExists(t, left)
	require.NoError(t, os.Mkdir(left, 0o755))
	require.NoError(t, fill(t.Context(), dir, func(context.Context, string) error { return nil }, quiet))
	assert.NoDirExists(t, left)
}

func TestDownloadsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := &progress{log: slog.New(slog.NewTextHandler(&out, nil)), told: time.Now()}
		fmt.Fprint(p, "[INFO] Downloading from x: a\n[INFO] Downloaded from x: a\n[INFO] Downl")
		require.Empty(t, out.String())
		time.Sleep(5 * time.Second)
		fmt.Fprint(p, "oaded from x: b\n[ERROR] no c\n")
		require.Contains(t, out.String(), "files=2")
		require.Equal(t, "[ERROR] no c\n", string(p.said))
	})
}
