package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/release/internal/repo"
)

// GitHub starts no workflow for tags if more than three are pushed at once. The root's tag, which starts the release,
// must be pushed alone, after all others.
func TestTheRootsTagIsPushedAlone(t *testing.T) {
	here, err := repo.Here()
	require.NoError(t, err)
	modules, err := here.Published()
	require.NoError(t, err)
	var pushes []string
	for line := range strings.Lines(whatToPush("v0.2.0", modules)) {
		if strings.Contains(line, "git push") {
			pushes = append(pushes, strings.TrimSpace(line))
		}
	}
	require.Len(t, pushes, 2)
	require.NotContains(t, strings.Fields(pushes[0]), "v0.2.0")
	for _, m := range modules {
		if m.Dir != "." {
			require.Contains(t, strings.Fields(pushes[0]), m.Tag("v0.2.0"))
		}
	}
	require.Equal(t, "git push origin v0.2.0", pushes[1])
}
