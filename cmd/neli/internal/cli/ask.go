package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/goneli/neli"
)

// Exit codes of transfer and step-down, besides codeVacant.
const (
	codeRefused  = 1
	codeNoAnswer = 124
)

const askLong = `The holder decides: it refuses unless it was told to take requests, as neli run is by
--allow-requests, and an application by Config.Requests. READ and WRITE on the topic is what
this takes; whoever has these may ask.

The role is given as a number (0 if nothing is said), as an argument or by --role; or by a key, of
which --slots makes the number, as the library's Slot does. An argument counts before --key, and
that before --role.

Exit codes: 0 it is done; 1 the holder refuses, or could not do it, and the text says why; 3 nobody
holds the role; 124 no answer within --wait, after which it may still be done; 125 neli itself
failed.`

// wish is what transfer and step-down are told.
type wish struct {
	role  int
	key   string
	slots int
	wait  time.Duration
}

func (o *wish) register(f *pflag.FlagSet) {
	f.IntVar(&o.role, "role", 0, "the role, from 0")
	f.StringVar(&o.key, "key", "", "a key in place of the role; needs --slots")
	f.IntVar(&o.slots, "slots", 0, "the number of roles that keys are spread over")
	f.DurationVar(&o.wait, "wait", time.Minute, "how long to wait for the end")
}

// target is the role that is meant: by an argument, by a key, or by its flag.
func (o *wish) target(args []string) (int, error) {
	switch {
	case len(args) > 0:
		role, err := strconv.Atoi(args[0])
		if err != nil || role < 0 {
			return 0, fmt.Errorf("role %q: must be a number from 0", args[0])
		}
		return role, nil
	case o.key != "" && o.slots < 1:
		return 0, fmt.Errorf("--slots %d: must be given with --key, and be 1 at least", o.slots)
	case o.key != "":
		return neli.Slot(o.key, o.slots), nil
	case o.slots != 0:
		return 0, errors.New("--slots: needs --key")
	case o.role < 0:
		return 0, fmt.Errorf("--role %d: must be a number from 0", o.role)
	}
	return o.role, nil
}

func newTransfer(c *common) *cobra.Command {
	var o wish
	cmd := &cobra.Command{
		Use:   "transfer [role] member",
		Short: "Ask the holder of a role to hand it over",
		Long: `Ask the holder of a role to hand it over to a member, which is given by its name or its id as
neli status has them. It stays there for the term; neither balance nor preference moves it.

` + askLong,
		Args: cobra.RangeArgs(1, 2),
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
		Short: "Ask the holder of a role to give up all that it leads",
		Long: `Ask the holder of a role to give up everything that it leads, not that role only, and to claim
nothing for ten seconds or three times its T, whichever is longer. Others lead, if there are any.

` + askLong,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ask(cmd, o, args, neli.Request{StepDown: true})
		},
	}
	o.register(cmd.Flags())
	return cmd
}

// ask sends a request as a process that only watches, and says what has become of it.
func (c *common) ask(cmd *cobra.Command, o wish, args []string, r neli.Request) error {
	role, err := o.target(args)
	if err != nil {
		return err
	}
	if o.wait <= 0 {
		return errors.New("--wait: must be positive")
	}
	n, ctx, stop, err := c.observe(cmd, role+1)
	if err != nil {
		return err
	}
	defer stop()
	r.Role = role
	return asked(ctx, n, r, o.wait, cmd.OutOrStdout())
}

func asked(ctx context.Context, n *neli.Neli, r neli.Request, wait time.Duration, out io.Writer) error {
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	err := n.Ask(ctx, r)
	switch {
	case err == nil && r.StepDown:
		_, err = fmt.Fprintf(out, "the holder of role %d has stepped down\n", r.Role)
		return err
	case err == nil:
		_, err = fmt.Fprintf(out, "role %d: handed over to %s\n", r.Role, printable(r.To))
		return err
	case errors.Is(err, neli.ErrRefused), errors.Is(err, neli.ErrNotDone):
		return exit{codeRefused, err}
	case errors.Is(err, neli.ErrVacant):
		return exit{codeVacant, err}
	case errors.Is(err, neli.ErrNoAnswer), errors.Is(err, context.DeadlineExceeded):
		return exit{codeNoAnswer, err}
	}
	return err
}
