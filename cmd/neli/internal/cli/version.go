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
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			is, toolchain := version, ""
			if info, ok := debug.ReadBuildInfo(); ok {
				is, toolchain = cmp.Or(is, info.Main.Version), info.GoVersion
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "neli", cmp.Or(is, "unknown"), toolchain)
			return err
		},
	}
}
