package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/goneli/neli"
)

const watchLong = `Print who leads, one line now and one for each change. It only reads.

--exec runs a program for each line, one at a time, with NELI_STATUS (unknown, vacant or held),
NELI_HOLDER, NELI_MEMBER, NELI_TOKEN, NELI_ROLES, NELI_PARTITION and NELI_GROUP in its environment.
NELI_ROLES has ranges of roles, like 0-4,9. After 8000 of them it ends in "…".
Changes while the program runs are not reported one by one: afterwards it runs once for the state of
that time. When the program fails, neli watch ends. A neli that the program runs needs its group,
topic and roles as arguments, like --group "$NELI_GROUP".

Exit codes: 0 a signal ended it; 3 the topic is missing; 5 no broker was reached; 125 neli itself or
the program of --exec failed.`

func newWatch(c *common) *cobra.Command {
	var asJSON bool
	var roles int
	var program string
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print who leads, now and at each change",
		Long:  watchLong,
		Args:  arguments(0, 0, ""),
		Example: `  neli watch --bootstrap kafka:9092 --group mailer
  neli watch --bootstrap kafka:9092 --group mailer --exec /etc/neli/on-change`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			n, err := c.observe(ctx, cmd, cmp.Or(roles, 1))
			if err != nil {
				return err
			}
			defer func() { _ = n.Close() }()
			if roles == 0 {
				go followRoles(ctx, n)
			}
			if err := watch(ctx, n, cmd.OutOrStdout(), asJSON, program); err != nil {
				return err
			}
			if n.State() == neli.StateFailed {
				return n.Await()
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	cmd.Flags().IntVar(&roles, "roles", 0, rolesUsage)
	cmd.Flags().StringVar(&program, "exec", "", "program to run for each change, without a shell and without arguments")
	return cmd
}

// followRoles has n watch all roles that a member contends for, as members announce them, until ctx is done or n has ended.
func followRoles(ctx context.Context, n *neli.Neli) {
	for ctx.Err() == nil && n.State() != neli.StateFailed && n.State() != neli.StateClosed {
		if r := announced(n); r > n.Stats().Roles {
			_ = n.SetRoles(r) // a member's number is within its bounds
		}
		wait(ctx, time.Second)
	}
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
		cmd.Env = append(os.Environ(), changed(s, n.Config().LeaderGroupID)...)
		if err := cmd.Run(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("--exec: %w", err)
		}
	}
	return nil
}

// changed returns the environment variables that tell --exec of a Standing.
func changed(s neli.Standing, group string) []string {
	return []string{
		variableOf("NELI_STATUS", s.Status.String()),
		variableOf("NELI_HOLDER", s.Holder.Name),
		variableOf("NELI_MEMBER", s.Holder.Member),
		variableOf("NELI_TOKEN", tokenOf(s)),
		variableOf("NELI_ROLES", ranges(s, maxRangesTold)),
		variableOf("NELI_PARTITION", strconv.Itoa(s.Partition)),
		variableOf("NELI_GROUP", group),
	}
}

func tell(out io.Writer, s neli.Standing, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(s)
	}
	line := fmt.Sprint(time.Now().Format(time.RFC3339), " roles ", ranges(s, maxRanges), " ", s.Status)
	if s.Status == neli.StatusHeld {
		line += fmt.Sprint(" by ", printable(s.Holder.Name), ", token ", s.Holder.Token)
	}
	_, err := fmt.Fprintln(out, line)
	return err
}

// tokenOf returns the token as text, empty if nobody holds the roles.
func tokenOf(s neli.Standing) string {
	if s.Status != neli.StatusHeld {
		return ""
	}
	return strconv.FormatInt(s.Holder.Token, 10)
}
