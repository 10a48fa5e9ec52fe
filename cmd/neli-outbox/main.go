// Command neli-outbox publishes rows of a PostgreSQL table to Kafka, in the order in which they were committed. Several
// processes share the work and replace each other.
//
//	neli-outbox schema --slots 16 | psql
//	neli-outbox relay --bootstrap localhost:9092 --database postgres://localhost/shop
//
// docs/outbox.md says what it promises, and what this requires.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/goneli/neli/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "neli-outbox:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "neli-outbox",
		Short:         "Publish rows of a PostgreSQL table to Kafka",
		Version:       version.Text(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("neli-outbox {{.Version}}\n")
	root.AddCommand(relayCommand(), schemaCommand())
	return root
}

func relayCommand() *cobra.Command {
	var c config
	cmd := &cobra.Command{
		Use:   "relay",
		Short: "Publish rows until interrupted",
		Long: "Publish rows until interrupted. Run several: they share the slots, and stand in for each other.\n" +
			"Each flag may also be given as OUTBOX_<FLAG> in the environment.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(fromEnvironment(cmd.Flags()), c.check(cmd.Flags())); err != nil {
				return err
			}
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // the reader of the log may end before the relay
			return run(cmd.Context(), &c)
		},
	}
	c.register(cmd.Flags())
	return cmd
}

func schemaCommand() *cobra.Command {
	var slots int
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the statements that make the table",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if slots < 1 || slots > mostSlots {
				return fmt.Errorf("--slots: %d must be 1 to %d", slots, mostSlots)
			}
			_, err := fmt.Fprint(cmd.OutOrStdout(), schema(slots))
			return err
		},
	}
	cmd.Flags().IntVar(&slots, "slots", 16, "into how many slots keys are spread: how many relays can be at work at once")
	return cmd
}

// manyShort is the number of useless terms in a row after which a relay warns.
const manyShort = 3

// shortTerms counts, for each slot, the terms in a row that this process lost before they were of use. A term begins
// with a dozen requests. If leadership never lasts that long, as on an overloaded machine, a slot stands still although
// it always finds a leader.
type shortTerms struct {
	mu     sync.Mutex
	inARow map[int]int
}

// ended notes the end of a term, and returns how many useless ones were lost in a row. lost says that the lease has
// lapsed. A term that was given up says nothing about the machine.
func (s *shortTerms) ended(slot int, useful, lost bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inARow == nil {
		s.inARow = map[int]int{}
	}
	switch {
	case useful:
		s.inARow[slot] = 0
	case lost:
		s.inARow[slot]++
	}
	return s.inARow[slot]
}
