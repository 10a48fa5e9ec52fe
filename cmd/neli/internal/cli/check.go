package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/goneli/neli"
)

const (
	// codeDoubts is the exit code of check when there is something to mend.
	codeDoubts = 3
	// probes is how many members of a group of their own write and read the topic.
	probes = 4
	// stall is the part of T that the log may stand still without ending a term
	// (docs/tuning.md).
	stall = 0.7
)

const checkLong = `Check what an election needs: that the brokers are reached and let this principal read and
write the topic, that the topic's settings are safe, and how long records take there and
back.

It names the broker, as far as it tells, and where the topic's settings differ from those that
the library would choose. What loses records that were acknowledged is refused, like
write.caching of Redpanda and Lightning topics of WarpStream, unless --known names the setting.

For the time of --for a few members of a group of their own, which other groups skip, write
a record every few seconds and read it again. They contend for nothing, and create nothing.

Exit codes: 0 all is well; 3 there is something to mend, which is said, or the topic is missing; 5 no
broker was reached; 125 nothing came back, or neli itself failed.`

func newCheck(c *common) *cobra.Command {
	var how time.Duration
	var known []string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check brokers, rights, settings and round trips",
		Long:  checkLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.resolve(cmd)
			if err != nil {
				return err
			}
			if how <= 0 {
				return fmt.Errorf("--for %v: must be positive", how)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return check(ctx, cfg, how, known, cmd.OutOrStdout())
		},
	}
	cmd.Flags().DurationVar(&how, "for", 20*time.Second, "how long round trips are measured")
	cmd.Flags().StringSliceVar(&known, "known", nil, "unsafe settings of the topic that are known and accepted, by name")
	return cmd
}

// check runs the probes and says what they have found.
func check(ctx context.Context, cfg neli.Config, how time.Duration, known []string, out io.Writer) error {
	found := &findings{said: map[string]bool{}, known: known}
	cfg.Logger = slog.New(found)
	cfg.LeaderGroupID = "neli check " + rand.Text()
	cfg.DisableTopicCreation = true
	cfg.HeartbeatTimeout = time.Minute // round trips up to that are measured
	var all []*neli.Neli
	defer func() {
		for _, n := range all {
			_ = n.Close() // they hold nothing
		}
	}()
	s := newScout(cfg.Provider)
	cfg.Provider = s
	for i := range probes {
		n, err := neli.New(cfg)
		if err != nil {
			return err
		}
		all = append(all, n)
		if i > 0 {
			continue
		}
		if err := s.reach(ctx, n, cfg, reachWithin); err != nil { // the others would find the same
			return err
		}
		fmt.Fprintln(out, "broker:", s.identify(ctx, cfg))
	}
	select {
	case <-time.After(how):
	case <-ctx.Done():
	}
	for _, n := range all {
		if n.State() == neli.StateFailed {
			return explained(n.Await(), cfg.KafkaConfig)
		}
	}
	return found.conclude(out, all)
}

// findings are the warnings that were logged, each once, and what is worth knowing beside.
type findings struct {
	known []string // settings that are accepted though they are unsafe

	mu     sync.Mutex
	said   map[string]bool
	lines  []string
	doubts int // of these lines
}

// differs is what the library logs of a setting that is not its own choice.
const differs = "a setting of the leader topic differs"

// Enabled implements slog.Handler.
func (f *findings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle implements slog.Handler.
func (f *findings) Handle(_ context.Context, r slog.Record) error {
	line, what, doubts := "to mend: "+r.Message, "", 1
	r.Attrs(func(a slog.Attr) bool {
		switch {
		case a.Key == "error" && r.Level >= slog.LevelWarn:
			what = a.Value.String()
			line += ": " + what
		case a.Key == "difference" && r.Message == differs:
			line, doubts = "differs: "+a.Value.String(), 0
		}
		return true
	})
	if r.Level < slog.LevelWarn && doubts > 0 {
		return nil
	}
	if name, _, ok := strings.Cut(what, "="); ok && slices.Contains(f.known, name) {
		line, doubts = "known: "+what, 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.said[line] {
		f.said[line] = true
		f.lines = append(f.lines, line)
		f.doubts += doubts
	}
	return nil
}

// WithAttrs implements slog.Handler: what is added says who logs, which is known.
func (f *findings) WithAttrs([]slog.Attr) slog.Handler { return f }

// WithGroup implements slog.Handler.
func (f *findings) WithGroup(string) slog.Handler { return f }

// conclude says what was found.
func (f *findings) conclude(out io.Writer, all []*neli.Neli) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lines {
		fmt.Fprintln(out, l)
	}
	trips := neli.Timing{}
	for _, n := range all {
		t := n.Stats().RoundTrips
		trips.Count += t.Count
		trips.Sum += t.Sum
		for i, c := range t.Buckets {
			trips.Buckets[i] += c
		}
	}
	if trips.Count == 0 {
		return errors.New("check: no record that was written has come back: see what is to mend")
	}
	half, longest := within(trips, (trips.Count+1)/2), within(trips, trips.Count)
	fmt.Fprintf(out, "round trips: %d, half of them within %v, all within %v\n", trips.Count, half, longest)
	fmt.Fprintf(out, "by that, T (--timeout) should be %v at least; brokers' crashes take longer: see docs/tuning.md\n",
		max(100*time.Millisecond, time.Duration(float64(longest)/stall).Round(10*time.Millisecond)))
	if f.doubts > 0 {
		return exit{code: codeDoubts}
	}
	return nil
}

// within is the bound below which the n shortest are.
func within(t neli.Timing, n uint64) time.Duration {
	bounds := neli.TimingBounds()
	var count uint64
	for i, c := range t.Buckets {
		if count += c; count >= n {
			return bounds[i]
		}
	}
	return time.Minute // the longest that is measured
}
