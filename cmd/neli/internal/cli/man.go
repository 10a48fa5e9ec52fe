package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newMan(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "man directory",
		Short: "Write manual pages into a directory",
		Args:  arguments(1, 1, "the directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "NELI", Section: "1", Source: "neli"}, args[0]); err != nil {
				return fmt.Errorf("cannot write manual pages: %w", err)
			}
			return nil
		},
	}
}
