package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/inside"
	"github.com/goneli/neli/internal/sentinel"
)

// Exit codes of status, the same as those of LSB for services.
const (
	codeVacant  = 3
	codeUnknown = 4
)

const statusLong = `Show who leads, and list the members.

It waits until the holder of every role is known, at most a little longer than --timeout, and then
asks all members to announce themselves, which takes a second or two. Members of a group of more than
20 spread their answers. Those that have not answered after five seconds are missing from the list,
which then says that it is not complete. Asking needs WRITE on the topic; with READ only, the list has
the members that were heard of meanwhile. The output shows what was read from the topic, with its age.

Exit codes: 0 every role is held; 3 some roles are vacant, or the topic is missing; 4 the state of some
roles is unknown; 5 no broker was reached; 125 neli itself failed.`

func newStatus(c *common) *cobra.Command {
	var asJSON bool
	var roles int
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show who leads",
		Long:  statusLong,
		Args:  arguments(0, 0, ""),
		Example: `  neli status --bootstrap kafka:9092 --group mailer
  neli status --bootstrap kafka:9092 --group mailer --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := c.observe(cmd.Context(), cmd, cmp.Or(roles, 1))
			if err != nil {
				return err
			}
			defer func() { _ = n.Close() }()
			return status(cmd.Context(), n, cmd.OutOrStdout(), asJSON, c.askSentinel(), roles == 0)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().IntVar(&roles, "roles", 0, rolesUsage)
	c.watchedBy(cmd.Flags(), "socket of a neli sentinel on this machine; also show how many members it watches")
	return cmd
}

// askSentinel describes what the sentinel on this machine does for the group; "" without --sentinel.
func (c *common) askSentinel() string {
	if c.sentinel == "" {
		return ""
	}
	n, err := sentinel.Ask(c.sentinel, c.topic, c.group)
	if err != nil {
		return "not reached: " + err.Error()
	}
	return fmt.Sprintf("watches %d of the %d members registered on this machine", n.Watched, n.Registered)
}

// observe starts a process that only watches. It returns once a broker has described the topic, or ctx
// is done. The caller closes it. A signal may end a verb without that, since the process holds nothing.
func (c *common) observe(ctx context.Context, cmd *cobra.Command, roles int) (*neli.Neli, error) {
	n, _, err := c.scouted(ctx, cmd, roles)
	return n, err
}

// scouted is observe, but also returns the scout, for its Admin and its reader's properties.
func (c *common) scouted(ctx context.Context, cmd *cobra.Command, roles int) (*neli.Neli, scout, error) {
	if roles < 1 {
		return nil, scout{}, fmt.Errorf("--roles %d: must be at least 1", roles)
	}
	cfg, err := c.resolve(cmd)
	if err != nil {
		return nil, scout{}, err
	}
	cfg.Observer, cfg.Roles = true, roles
	log := &hushed{Handler: cfg.Logger.Handler()}
	cfg.Logger = slog.New(log)
	s := newScout(cfg.Provider)
	cfg.Provider = s
	n, err := neli.New(cfg)
	if err != nil {
		return nil, s, err
	}
	if err := s.reach(ctx, n, cfg, reachWithin); err != nil {
		_ = n.Close()
		return nil, s, err
	}
	return n, s, nil
}

// hushed drops the warnings about unreached brokers and a topic that is missing or cannot be written to.
// The command reports these itself.
type hushed struct{ slog.Handler }

// Handle implements slog.Handler.
func (h *hushed) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn && (strings.HasPrefix(r.Message, "cannot find the leader topic") || strings.HasPrefix(r.Message, "no broker reached") ||
		strings.HasPrefix(r.Message, "cannot write to the leader topic")) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *hushed) WithAttrs(a []slog.Attr) slog.Handler { return &hushed{h.Handler.WithAttrs(a)} }

// WithGroup implements slog.Handler.
func (h *hushed) WithGroup(name string) slog.Handler { return &hushed{h.Handler.WithGroup(name)} }

// rolesUsage describes the flag --roles, of which 0 stands for all.
const rolesUsage = "number of roles to show; 0: all that a member contends for"

// announced returns how many roles the group has, as far as this process knows: the most that any member contends for.
func announced(n *neli.Neli) int {
	most := n.Stats().Roles
	for _, m := range n.Members() {
		most = max(most, m.Roles)
	}
	return most
}

// status shows who leads. If all is set, it shows all roles that any member contends for.
func status(ctx context.Context, n *neli.Neli, out io.Writer, asJSON bool, sentinel string, all bool) error {
	missing, err := learn(ctx, n, all)
	if err != nil {
		return err
	}
	standings, members := n.Standings(), n.Members()
	if err := show(out, report{n.Config().LeaderGroupID, standings, members, missing, sentinel}, asJSON); err != nil {
		return err
	}
	switch {
	case len(standings) == 0 || slices.ContainsFunc(standings, unknown):
		return exit{code: codeUnknown}
	case slices.ContainsFunc(standings, func(s neli.Standing) bool { return s.Status == neli.StatusVacant }):
		return exit{code: codeVacant}
	}
	return nil
}

// learn waits up to 5/4 T + 1 s until it knows the roles' holders, and asks the members to announce themselves. It
// returns why members may be missing. If all is set, it learns the holders of all roles that any member contends for.
func learn(ctx context.Context, n *neli.Neli, all bool) (missing string, err error) {
	known, stop := context.WithTimeout(ctx, n.Config().HeartbeatTimeout*5/4+time.Second)
	defer stop()
	settle := func() {
		for range n.Watch(known) {
			if !slices.ContainsFunc(n.Standings(), unknown) {
				break
			}
		}
	}
	settle()
	missing = callMembers(ctx, n)
	if r := announced(n); all && r > n.Stats().Roles {
		if err := n.SetRoles(r); err != nil {
			return "", err
		}
		settle()
	}
	if n.State() == neli.StateFailed {
		return "", n.Await()
	}
	return missing, nil
}

const (
	// callWithin limits how long writing the call to the members may take.
	callWithin = 2 * time.Second
	// A group of up to 20 has answered after answersWithin. A larger one gets until answersAtMost.
	answersWithin = 1250 * time.Millisecond
	answersAtMost = 5 * time.Second
	// crowd is the size of the largest group that answers within answersWithin.
	crowd = 20
)

// callMembers asks the members to announce themselves, and waits for their answers. It returns why
// some members may be missing; "" if all that can be reached are known.
func callMembers(ctx context.Context, n *neli.Neli) (missing string) {
	within, stop := context.WithTimeout(ctx, callWithin)
	defer stop()
	if err := inside.CallMembers(within, n); err != nil {
		return "the members could not be asked (" + tidy(err.Error()) + ")"
	}
	began := time.Now()
	wait(ctx, answersWithin)
	known := len(n.Members())
	for known > crowd && time.Since(began) < answersAtMost && ctx.Err() == nil {
		wait(ctx, answersWithin/5)
		known = len(n.Members())
	}
	if known > crowd {
		return "members of a large group spread their answers"
	}
	return ""
}

// wait waits for d, or until ctx is done.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func unknown(s neli.Standing) bool { return s.Status == neli.StatusUnknown }

// report is what status shows.
type report struct {
	group     string
	standings []neli.Standing
	members   []neli.Member
	missing   string // why members may be missing; "": none are
	sentinel  string // what the sentinel on this machine does; "": none was asked
}

func show(out io.Writer, r report, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(struct {
			Group      string          `json:"group"`
			Standings  []neli.Standing `json:"standings"`
			Members    []neli.Member   `json:"members"`
			Incomplete string          `json:"incomplete,omitempty"`
			Sentinel   string          `json:"sentinel,omitempty"`
		}{r.group, withoutSince(r.standings), nonNil(r.members), r.missing, r.sentinel})
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PARTITION\tROLES\tSTATUS\tHOLDER\tTOKEN\tAGE")
	for _, s := range r.standings {
		if s.Status != neli.StatusHeld {
			fmt.Fprintf(w, "%d\t%s\t%s\t\t\t\n", s.Partition, ranges(s, maxRanges), s.Status)
			continue
		}
		h := s.Holder
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%v\n", s.Partition, ranges(s, maxRanges), s.Status, printable(h.Name), h.Token, h.Age.Round(time.Millisecond))
	}
	if len(r.members) > 0 {
		fmt.Fprintln(w, "\nMEMBER\tID\tPRIORITY\tZONE\tADDRESS\tHEARD")
		for _, m := range r.members {
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%v ago\n", printable(m.Name), printable(m.ID), m.Priority, printable(m.Zone), printable(m.Advertise), m.Age.Round(time.Millisecond))
		}
	}
	if r.sentinel != "" {
		fmt.Fprintf(w, "\nSENTINEL  %s\n", printable(r.sentinel))
	}
	if err := w.Flush(); err != nil || r.missing == "" {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%d members are known; there may be more: %s\n", len(r.members), r.missing)
	return err
}

// withoutSince returns the standings without Since: this process has just started, and knows only when
// it heard of the holders, not when they were elected.
func withoutSince(standings []neli.Standing) []neli.Standing {
	out := nonNil(slices.Clone(standings))
	for i := range out {
		out[i].Holder.Since = time.Time{}
	}
	return out
}

// nonNil makes JSON say [] rather than null for an empty list.
func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
