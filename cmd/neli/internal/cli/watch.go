package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/goneli/neli"
)

const watchLong = `Say who leads, and whenever that changes: a line each. It only reads.

--exec runs a program for each line, one after the other, with NELI_STATUS (unknown, vacant,
held), NELI_HOLDER, NELI_MEMBER, NELI_TOKEN, NELI_ROLES, NELI_PARTITION and NELI_GROUP in its
environment. While it runs changes are missed; afterwards it is told of what is so then. When it
fails neli watch ends.

Exit codes: 0 a signal has ended it; 3 the topic is missing; 5 no broker was reached; 125 neli itself
or --exec failed.`

func newWatch(c *common) *cobra.Command {
	var asJSON bool
	var roles int
	var program string
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Say who leads, and what changes",
		Long:  watchLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, ctx, stop, err := c.observe(cmd, roles)
			if err != nil {
				return err
			}
			defer stop()
			if err := watch(ctx, n, cmd.OutOrStdout(), asJSON, program); err != nil {
				return err
			}
			if n.State() == neli.StateFailed {
				return n.Await()
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "lines of JSON")
	cmd.Flags().IntVar(&roles, "roles", 1, "the number of roles of the group")
	cmd.Flags().StringVar(&program, "exec", "", "a program to run for each change; no shell, no arguments")
	return cmd
}

func watch(ctx context.Context, n *neli.Neli, out io.Writer, asJSON bool, program string) error {
	for s := range n.Watch(ctx) {
		if err := tell(out, s, asJSON); err != nil {
			return err
		}
		if program == "" {
			continue
		}
		cmd := exec.CommandContext(ctx, program)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.Env = append(os.Environ(), changed(s, n.Group())...)
		if err := cmd.Run(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("--exec: %w", err)
		}
	}
	return nil
}

// changed is the environment in which --exec is told of a Standing.
func changed(s neli.Standing, group string) []string {
	return []string{
		variableOf("NELI_STATUS", s.Status.String()),
		variableOf("NELI_HOLDER", s.Holder.Name),
		variableOf("NELI_MEMBER", s.Holder.Member),
		variableOf("NELI_TOKEN", tokenOf(s)),
		variableOf("NELI_ROLES", ranges(s)),
		variableOf("NELI_PARTITION", strconv.Itoa(s.Partition)),
		variableOf("NELI_GROUP", group),
	}
}

func tell(out io.Writer, s neli.Standing, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(s)
	}
	line := fmt.Sprint(time.Now().Format(time.RFC3339), " roles ", ranges(s), " ", s.Status)
	if s.Status == neli.Held {
		line += fmt.Sprint(" by ", printable(s.Holder.Name), ", token ", s.Holder.Token)
	}
	_, err := fmt.Fprintln(out, line)
	return err
}

// tokenOf is the token as text, empty if nobody holds the roles.
func tokenOf(s neli.Standing) string {
	if s.Status != neli.Held {
		return ""
	}
	return strconv.FormatInt(s.Holder.Token, 10)
}
