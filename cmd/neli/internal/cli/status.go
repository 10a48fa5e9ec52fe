package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/goneli/neli"
)

// Exit codes of status, as LSB has them for services.
const (
	codeVacant  = 3
	codeUnknown = 4
)

const statusLong = `Show who leads. It only reads: READ on the topic is all it needs.

It waits until something is known of every role, for little more than --timeout at most.
What it shows is what it has read, with its age. Members are those heard of meanwhile: each
says something every five seconds.

Exit codes: 0 every role is held; 3 some are vacant; 4 of some nothing is known; 125 neli itself
failed.`

func newStatus(c *common) *cobra.Command {
	var asJSON bool
	var roles int
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show who leads",
		Long:  statusLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, ctx, stop, err := c.observe(cmd, roles)
			if err != nil {
				return err
			}
			defer stop()
			return status(ctx, n, cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one object of JSON")
	cmd.Flags().IntVar(&roles, "roles", 1, "the number of roles of the group")
	return cmd
}

// observe starts a process that only watches, and a context that ends with a signal.
func (c *common) observe(cmd *cobra.Command, roles int) (*neli.Neli, context.Context, func(), error) {
	cfg, err := c.resolve(cmd)
	if err != nil {
		return nil, nil, nil, err
	}
	cfg.Observer, cfg.Roles = true, roles
	n, err := neli.New(cfg)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	return n, ctx, func() {
		stop()
		_ = n.Close() // it holds nothing
	}, nil
}

func status(ctx context.Context, n *neli.Neli, out io.Writer, asJSON bool) error {
	ctx, stop := context.WithTimeout(ctx, n.HeartbeatTimeout()*5/4+time.Second)
	defer stop()
	for range n.Watch(ctx) {
		if !slices.ContainsFunc(n.Standings(), unknown) {
			break
		}
	}
	if n.State() == neli.StateFailed {
		return n.Await()
	}
	standings, members := n.Standings(), n.Members()
	if err := show(out, n, standings, members, asJSON); err != nil {
		return err
	}
	switch {
	case len(standings) == 0 || slices.ContainsFunc(standings, unknown):
		return exit{code: codeUnknown}
	case slices.ContainsFunc(standings, func(s neli.Standing) bool { return s.Status == neli.Vacant }):
		return exit{code: codeVacant}
	}
	return nil
}

func unknown(s neli.Standing) bool { return s.Status == neli.Unknown }

func show(out io.Writer, n *neli.Neli, standings []neli.Standing, members []neli.Member, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(struct {
			Group     string          `json:"group"`
			Standings []neli.Standing `json:"standings"`
			Members   []neli.Member   `json:"members"`
		}{n.Group(), nonNil(standings), nonNil(members)})
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PARTITION\tROLES\tSTATUS\tHOLDER\tTOKEN\tSINCE\tAGE")
	for _, s := range standings {
		if s.Status != neli.Held {
			fmt.Fprintf(w, "%d\t%s\t%s\t\t\t\t\n", s.Partition, ranges(s), s.Status)
			continue
		}
		h := s.Holder
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%s\t%v\n", s.Partition, ranges(s), s.Status, printable(h.Name), h.Token,
			h.Since.Format(time.RFC3339), h.Age.Round(time.Millisecond))
	}
	if len(members) > 0 {
		fmt.Fprintln(w, "\nMEMBER\tID\tPRIORITY\tHEARD")
		for _, m := range members {
			fmt.Fprintf(w, "%s\t%s\t%d\t%v ago\n", printable(m.Name), printable(m.ID), m.Priority, m.Age.Round(time.Millisecond))
		}
	}
	return w.Flush()
}

// nonNil has JSON say [] of what is empty.
func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
