package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/release/internal/repo"
)

func TestNoticeIsUpToDate(t *testing.T) {
	r, err := repo.Here()
	require.NoError(t, err)
	want, err := notice(r)
	require.NoError(t, err)
	has, err := os.ReadFile(filepath.Join(r.Dir, "NOTICE"))
	require.NoError(t, err)
	require.True(t, string(want) == string(has), "NOTICE is old: make notice")
}
