package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/goneli/neli"
)

// Further exit codes of transfer, step-down and rebalance.
const (
	codeRefused  = 1
	codeNoAnswer = 124
)

const askLong = `The holder decides. It refuses unless it takes requests: neli run does with --allow-requests, an
application with Config.Requests. The command needs READ and WRITE on the topic, and everyone who
has these rights may ask.

Name the role by its number, as an argument or with --role (default 0), or by a key: with --slots,
--key gives the number that the library's Slot gives. An argument wins over --key, and --key over
--role.

Exit codes: 0 done, or the member already leads the role; 1 the holder refused or could not do it, and
the message says why; 3 nobody holds the role, or the topic is missing; 5 no broker was reached; 124 no
answer within --wait, but it may still be done later; 125 neli itself failed.`

// wish holds the flags of transfer and step-down.
type wish struct {
	role  int
	key   string
	slots int
	wait  time.Duration
}

func (o *wish) register(f *pflag.FlagSet) {
	f.IntVar(&o.role, "role", 0, "number of the role, from 0")
	f.StringVar(&o.key, "key", "", "a key instead of the role's number; needs --slots")
	f.IntVar(&o.slots, "slots", 0, "number of roles over which keys are spread")
	f.DurationVar(&o.wait, "wait", time.Minute, "how long to wait for the result")
}

// maxRole is the highest role that the library accepts.
const maxRole = 999_999

// target returns the role that is named by an argument, by a key, or by the flag --role.
func (o *wish) target(args []string) (int, error) {
	switch {
	case len(args) > 0:
		role, err := strconv.Atoi(args[0])
		if err != nil || role < 0 || role > maxRole {
			return 0, fmt.Errorf("role %q: must be a number from 0 to %d", args[0], maxRole)
		}
		return role, nil
	case o.key != "" && (o.slots < 1 || o.slots > maxRole+1):
		return 0, fmt.Errorf("--slots %d: must be from 1 to %d, and be given with --key", o.slots, maxRole+1)
	case o.key != "":
		return neli.Slot(o.key, o.slots), nil
	case o.slots != 0:
		return 0, fmt.Errorf("--slots %d: needs --key", o.slots)
	case o.role < 0 || o.role > maxRole:
		return 0, fmt.Errorf("--role %d: must be a number from 0 to %d", o.role, maxRole)
	}
	return o.role, nil
}

func newTransfer(c *common) *cobra.Command {
	var o wish
	cmd := &cobra.Command{
		Use:   "transfer [role] member",
		Short: "Ask the holder of a role to hand it over",
		Long: `Ask the holder of a role to hand it over to a member. Name the member by its name or its id, as
shown by neli status. The role stays there for the term: neither balance nor preference moves it.

` + askLong,
		Example: `  neli transfer --bootstrap kafka:9092 --group mailer host7`,
		Args:    arguments(1, 2, "the member, and before it the role if it is not 0"),
		RunE: func(cmd *cobra.Command, args []string) error {
			last := len(args) - 1
			return c.ask(cmd, o, args[:last], neli.Request{To: args[last]})
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func newStepDown(c *common) *cobra.Command {
	var o wish
	cmd := &cobra.Command{
		Use:   "step-down [role]",
		Short: "Ask the holder of a role to give up everything it leads",
		Long: `Ask the holder of a role to give up everything it leads, not only that role, and to claim nothing
for ten seconds or three times its T, whichever is longer. Other members, if there are any, then lead.

` + askLong,
		Example: `  neli step-down --bootstrap kafka:9092 --group mailer`,
		Args:    arguments(0, 1, "the role, if it is not 0"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ask(cmd, o, args, neli.Request{StepDown: true})
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func newRebalance(c *common) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "rebalance",
		Short: "Ask all leaders to share out their roles now",
		Long: `Ask all leaders, one after the other, to hand over now what exceeds their share, also what balance
tolerates, and with DisableRebalance: the library's Rebalance. They need --allow-requests or
Config.Requests, as for neli transfer.

Exit codes: as for neli transfer; 3 nobody leads, or the topic is missing.`,
		Example: `  neli rebalance --bootstrap kafka:9092 --group mailer`,
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait <= 0 {
				return fmt.Errorf("--wait %v: must be positive", wait)
			}
			n, err := c.observe(cmd.Context(), cmd, 1)
			if err != nil {
				return err
			}
			defer func() { _ = n.Close() }()
			return rebalance(cmd.Context(), n, wait, cmd.OutOrStdout())
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Minute, "how long to wait for each leader")
	return cmd
}

// rebalance asks each leader, and returns the first error.
func rebalance(ctx context.Context, n *neli.Neli, wait time.Duration, out io.Writer) error {
	if _, err := learn(ctx, n, true); err != nil {
		return err
	}
	var first error
	seen := map[string]bool{}
	for _, s := range n.Standings() {
		if s.Status != neli.StatusHeld || seen[s.Holder.Member] || ctx.Err() != nil {
			continue
		}
		seen[s.Holder.Member] = true
		for role := range s.Roles() {
			err := asked(ctx, n, neli.Request{Role: role, Rebalance: true}, wait, out)
			if first == nil {
				first = err
			}
			break
		}
	}
	if len(seen) == 0 {
		return exit{codeVacant, errors.New("nobody leads")}
	}
	return first
}

// arguments returns a check of the number of arguments. Its error names the ones that the verb takes.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		if most == 0 {
			return fmt.Errorf("%s: takes no arguments, %d given: neli %s", cmd.Name(), len(args), cmd.Use)
		}
		return fmt.Errorf("%s: %d arguments given: must be %s: neli %s", cmd.Name(), len(args), what, cmd.Use)
	}
}

// ask sends a request as a process that only watches, and prints the result.
func (c *common) ask(cmd *cobra.Command, o wish, args []string, r neli.Request) error {
	role, err := o.target(args)
	if err != nil {
		return err
	}
	if o.wait <= 0 {
		return fmt.Errorf("--wait %v: must be positive", o.wait)
	}
	if r.To == "" && !r.StepDown {
		return errors.New(`member "": must be the name or the id of a member`)
	}
	n, err := c.observe(cmd.Context(), cmd, role+1)
	if err != nil {
		return err
	}
	defer func() { _ = n.Close() }()
	r.Role = role
	return asked(cmd.Context(), n, r, o.wait, cmd.OutOrStdout())
}

func asked(ctx context.Context, n *neli.Neli, r neli.Request, wait time.Duration, out io.Writer) error {
	late := fmt.Errorf("not done within %v (--wait)", wait)
	ctx, stop := context.WithTimeoutCause(ctx, wait, late)
	defer stop()
	err := n.Ask(ctx, r)
	switch {
	case err == nil && r.Rebalance:
		_, err = fmt.Fprintf(out, "the holder of role %d has shared out what exceeds its share\n", r.Role)
		return err
	case err == nil && r.StepDown:
		_, err = fmt.Fprintf(out, "the holder of role %d has stepped down\n", r.Role)
		return err
	case err == nil:
		_, err = fmt.Fprintf(out, "role %d: handed over to %s\n", r.Role, printable(r.To))
		return err
	case errors.Is(err, neli.ErrLeadsAlready):
		_, err = fmt.Fprintf(out, "%s already leads role %d\n", printable(r.To), r.Role)
		return err
	case errors.Is(err, neli.ErrRefused) && strings.Contains(err.Error(), "it takes no requests"):
		return exit{codeRefused, fmt.Errorf("%w: neli run takes them with --allow-requests, an application with Config.Requests", err)}
	case errors.Is(err, neli.ErrRefused), errors.Is(err, neli.ErrNotDone):
		return exit{codeRefused, err}
	case errors.Is(err, neli.ErrVacant):
		return exit{codeVacant, err}
	case errors.Is(err, neli.ErrNoAnswer), errors.Is(err, late):
		return exit{codeNoAnswer, err}
	}
	return err
}
