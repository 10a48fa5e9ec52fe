package cli

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by builds from a checkout (make command). Go itself knows the version only of a module
// that it has downloaded.
var version string

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "neli", versionText())
			return err
		},
	}
}

// versionText returns the version of this program and of Go.
func versionText() string {
	is, toolchain := version, ""
	if info, ok := debug.ReadBuildInfo(); ok {
		is, toolchain = cmp.Or(is, info.Main.Version), info.GoVersion
	}
	return cmp.Or(is, "unknown") + " " + toolchain
}
