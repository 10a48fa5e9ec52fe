package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			version, toolchain := "unknown", ""
			if info, ok := debug.ReadBuildInfo(); ok {
				version, toolchain = info.Main.Version, info.GoVersion
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "neli", version, toolchain)
			return err
		},
	}
}
