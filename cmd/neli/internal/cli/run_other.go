//go:build !linux

package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

func guarded([]string) (code int, ok bool) { return 0, false }

// newRun says that what keeps the promise of run is there on Linux only: a clock that
// counts suspensions to be woken by, and children that die with their parents.
func newRun(*common) *cobra.Command {
	return &cobra.Command{
		Use:                "run",
		Short:              "Run a command while leading (Linux only)",
		DisableFlagParsing: true,
		RunE:               func(*cobra.Command, []string) error { return errors.New("run: works on Linux only") },
	}
}
