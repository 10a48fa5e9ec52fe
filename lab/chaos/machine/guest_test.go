package machine

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A line that cannot be read means that all later reports of the member are lost, so the run must
// fail.
func TestOutputIsReadToItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		wrote string
		want  error
	}{
		"lines":           {"{}\n{}\n", nil},
		"a line too long": {"{}\n" + strings.Repeat("x", 1<<20) + "\n{}\n", bufio.ErrTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			told, err := os.Create(filepath.Join(t.TempDir(), "told"))
			require.NoError(t, err)
			g := &guest{name: "m1.1", cmd: exec.Command("true"), done: make(chan struct{})}
			require.NoError(t, g.cmd.Start())
			g.live(strings.NewReader(c.wrote), told)
			require.ErrorIs(t, g.garbled, c.want)
		})
	}
}
