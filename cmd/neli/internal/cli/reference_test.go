package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/cli.md equals the command's help. NELI_UPDATE=1 writes it.
func TestReference(t *testing.T) {
	const file = "../../../../docs/cli.md"
	var b strings.Builder
	require.NoError(t, Reference(&b))
	if os.Getenv("NELI_UPDATE") != "" {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(text), b.String(), "make generate")
}
