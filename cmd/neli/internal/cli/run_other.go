//go:build !linux

package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

func guarded([]string) (code int, ok bool) { return 0, false }

// newRun returns a command that refuses to run. Its promise needs two things that only Linux has: a
// timer on a clock that counts suspensions, and children that die with their parents.
func newRun(*common) *cobra.Command {
	return &cobra.Command{
		Use:                "run",
		Short:              "Run a command while leading (Linux only)",
		DisableFlagParsing: true,
		RunE:               func(*cobra.Command, []string) error { return errors.New("run: works on Linux only") },
	}
}
