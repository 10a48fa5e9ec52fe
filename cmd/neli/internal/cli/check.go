package cli

import (
	"cmp"
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
	// codeDoubts is the exit code of check when there is something to fix.
	codeDoubts = 3
	// probes is the number of members that write and read the topic, in a group of their own.
	probes = 4
	// stall is the part of T for which the log may stand still without ending a term (docs/tuning.md).
	stall = 0.7
)

const checkLong = `Check what an election needs: brokers that can be reached, each at the address that it advertises, the
right to read and write the topic, and safe settings of the topic; if the topic is missing, whether it can
be created. Measure how long a record takes to the broker and back.

It prints what kind of broker it found, as far as the broker tells, and each setting of the topic
that differs from what the library would choose. A setting that can lose acknowledged records, like
write.caching of Redpanda or a Lightning topic of WarpStream, counts as a fault unless --known names
it.

For the time given by --for, a few members of a group of their own write a record every few seconds
and read it back. Other groups skip these records. The members contend for nothing and create
nothing. From these round trips follows the least T: a --timeout below it counts as a fault. After
SIGINT or SIGTERM it reports what it has found so far. It does so too if a missing right ends it.

Exit codes: 0 all is well; 3 the output says what to fix, or the topic is missing; 5 no broker was
reached; 125 no record came back, or neli itself failed.`

func newCheck(c *common) *cobra.Command {
	var how time.Duration
	var known []string
	cmd := &cobra.Command{
		Use:     "check",
		Short:   "Check brokers, rights, settings and round trips",
		Long:    checkLong,
		Args:    arguments(0, 0, ""),
		Example: `  neli check --bootstrap kafka:9092 --group mailer --timeout 5s`,
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
			out := &checkedWriter{Writer: cmd.OutOrStdout()}
			return cmp.Or(check(ctx, cfg, how, known, out), out.err)
		},
	}
	cmd.Flags().DurationVar(&how, "for", 20*time.Second, "how long to measure round trips")
	cmd.Flags().StringSliceVar(&known, "known", nil, "names of unsafe settings of the topic to accept")
	return cmd
}

// checkedWriter keeps the first write error: check fails if its output could not be printed.
type checkedWriter struct {
	io.Writer
	err error
}

func (w *checkedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.err = cmp.Or(w.err, err)
	return n, err
}

// check runs the probes and prints what they found.
func check(ctx context.Context, cfg neli.Config, how time.Duration, known []string, out io.Writer) error {
	// The probes hold nothing that a sentinel could release.
	if err := os.Unsetenv("NELI_SENTINEL"); err != nil {
		return err
	}
	found := &findings{said: map[string]bool{}, known: known, lease: cfg.HeartbeatTimeout}
	cfg.Logger = slog.New(found)
	cfg.LeaderGroupID = "neli check " + rand.Text()
	cfg.DisableTopicCreation = true
	cfg.HeartbeatTimeout = time.Minute // the longest round trip that can be measured
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
		err = s.reach(ctx, n, cfg, reachWithin) // the other probes would get the same error
		if missing := isExit(err, codeMissing); missing || err == nil {
			faults := s.try(ctx, cfg, missing)
			for _, fault := range faults {
				found.add("to fix: "+fault, 1)
			}
			if missing && len(faults) > 0 {
				return exit{codeMissing, fmt.Errorf("topic %s is missing, and neli run cannot create it: %s", printable(cfg.LeaderTopic), strings.Join(faults, "; "))}
			}
		}
		if err != nil {
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
			err := explained(n.Await(), cfg.KafkaConfig)
			found.leaveOut(err)
			_ = found.conclude(out, tripsOf(all), ctx.Err() != nil) // err says more
			return err
		}
	}
	return found.conclude(out, tripsOf(all), ctx.Err() != nil)
}

// findings collects each fault and each differing setting once, mostly from the library's log.
type findings struct {
	known []string      // unsafe settings to accept
	lease time.Duration // T, as the user gave it

	mu     sync.Mutex
	said   map[string]bool
	lines  []string
	doubts int // number of lines that need fixing
}

// differs is the library's log message for a setting other than its own choice.
const differs = "a setting of the leader topic differs"

// failed is the library's log message when it stops. It is no finding, since check returns the same error.
const failed = "leadership is not possible any more"

// Enabled implements slog.Handler.
func (f *findings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle implements slog.Handler.
func (f *findings) Handle(_ context.Context, r slog.Record) error {
	line, what, doubts := "to fix: "+r.Message, "", 1
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
	if r.Level < slog.LevelWarn && doubts > 0 || r.Message == failed {
		return nil
	}
	if name, _, ok := strings.Cut(what, "="); ok && slices.Contains(f.known, name) {
		line, doubts = "known: "+what, 0
	}
	f.add(line, doubts)
	return nil
}

// add adds a line, unless it is there.
func (f *findings) add(line string, doubts int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.said[line] {
		f.said[line] = true
		f.lines = append(f.lines, line)
		f.doubts += doubts
	}
}

// leaveOut removes the findings that err repeats: the library retried for a while before it gave up.
func (f *findings) leaveOut(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = slices.DeleteFunc(f.lines, func(line string) bool {
		_, what, retried := strings.Cut(line, ", retrying: ")
		return retried && strings.Contains(err.Error(), what)
	})
}

// WithAttrs implements slog.Handler. It drops the attributes: they only say which member logs.
func (f *findings) WithAttrs([]slog.Attr) slog.Handler { return f }

// WithGroup implements slog.Handler.
func (f *findings) WithGroup(string) slog.Handler { return f }

// conclude prints the findings and the round trips. Its error decides the exit code.
func (f *findings) conclude(out io.Writer, trips neli.Timing, interrupted bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lines {
		fmt.Fprintln(out, l)
	}
	switch {
	case trips.Count > 0:
	case f.doubts > 0:
		return errors.New("check: none of the written records came back: fix what is listed above")
	case interrupted:
		return errors.New("check: interrupted before a written record came back")
	default:
		return errors.New("check: none of the written records came back, and the library reported no error: try a longer --for")
	}
	half, longest := within(trips, (trips.Count+1)/2), within(trips, trips.Count)
	fmt.Fprintf(out, "round trips: %d, half of them within %v, all within %v\n", trips.Count, half, longest)
	// Records that take a quarter of T are too late for a claim. half is only the bound of a coarse bucket, so the
	// mean may be the better estimate.
	mean := time.Duration(trips.Sum / float64(trips.Count) * float64(time.Second))
	usual, worst := (4 * min(half, mean)).Round(10*time.Millisecond), max(100*time.Millisecond, time.Duration(float64(longest)/stall).Round(10*time.Millisecond))
	least := max(usual, worst)
	fmt.Fprintf(out, "T (--timeout) should therefore be at least %v; a broker's crash takes longer: see docs/tuning.md\n", least)
	switch {
	case f.lease < usual:
		fmt.Fprintf(out, "to fix: --timeout %v is less than four round trips: nobody would claim a role. Shorten the round trips (linger.ms is 0 by default), or raise --timeout\n", f.lease)
		f.doubts++
	case f.lease < least:
		fmt.Fprintf(out, "to fix: --timeout %v is less than that\n", f.lease)
		f.doubts++
	}
	if f.doubts > 0 {
		return exit{code: codeDoubts}
	}
	return nil
}

// tripsOf returns the round trips of all probes.
func tripsOf(all []*neli.Neli) (trips neli.Timing) {
	for _, n := range all {
		t := n.Stats().RoundTrips
		trips.Count, trips.Sum = trips.Count+t.Count, trips.Sum+t.Sum
		for i, b := range t.Buckets {
			if i == len(trips.Buckets) {
				trips.Buckets = append(trips.Buckets, neli.TimingBucket{UpTo: b.UpTo})
			}
			trips.Buckets[i].Count += b.Count
		}
	}
	return trips
}

// within returns the bound below which the n shortest round trips lie.
func within(t neli.Timing, n uint64) time.Duration {
	for _, b := range t.Buckets {
		if b.Count >= n {
			return b.UpTo
		}
	}
	return time.Minute // the longest that can be measured
}
