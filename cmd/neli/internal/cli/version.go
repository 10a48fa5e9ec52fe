package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/goneli/neli/internal/version"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "neli", version.Text())
			return err
		},
	}
}
