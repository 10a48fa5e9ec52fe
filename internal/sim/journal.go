package sim

import (
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli/internal/mutation"
)

// journal records what happens in a world, and whether a promise was broken. It has a mutex of
// its own, so that it can be written to while any other one is held.
type journal struct {
	*testing.T
	began time.Time

	writing sync.Mutex // guards the fields below
	lines   []line
	failed  bool
}

// line is a line of the transcript. It is formatted only if the transcript is wanted.
type line struct {
	at     time.Duration
	who    string
	format string
	args   []any
}

func (j *journal) say(who, format string, args ...any) {
	j.writing.Lock()
	defer j.writing.Unlock()
	if !j.failed { // what follows the first violation is of no use
		j.lines = append(j.lines, line{time.Since(j.began), who, format, args})
	}
}

// violated reports a broken promise. Only the first one of a run counts, since the others may follow from it.
func (j *journal) violated(format string, args ...any) {
	j.writing.Lock()
	defer j.writing.Unlock()
	if j.failed {
		return
	}
	j.failed = true
	what := fmt.Sprintf(format, args...)
	j.lines = append(j.lines, line{time.Since(j.began), "", "VIOLATION: %s", []any{what}})
	if !wanted(what) {
		j.Logf("passed over: %s (at %v)", what, time.Since(j.began))
		return
	}
	j.Errorf("VIOLATION: %s (at %v)", what, time.Since(j.began))
}

// inBubble runs a world in a bubble of its own. The end of a bubble panics if a goroutine is left that
// waits for ever, which is a violation, too.
func inBubble(t *testing.T, transcript func() string, run func(*testing.T)) {
	defer func() {
		if left := recover(); left != nil {
			if what := fmt.Sprint(left); wanted(what) {
				t.Errorf("VIOLATION: %s\n%s", what, transcript())
			}
		}
	}()
	synctest.Test(t, run)
}

// wanted reports whether a violation fails the run. While a rule is taken out, only violations that
// this rule prevents do (see internal/mutation).
func wanted(what string) bool {
	want, err := regexp.Compile(os.Getenv(mutation.WantEnv))
	return err != nil || want.MatchString(what)
}

// over reports whether a promise was broken.
func (j *journal) over() bool {
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.failed
}

// transcript returns the events, one a line.
func (j *journal) transcript() string {
	j.writing.Lock()
	defer j.writing.Unlock()
	var b strings.Builder
	b.WriteString("transcript, times in seconds:\n")
	for _, l := range j.lines {
		fmt.Fprintf(&b, "%12.6f  %-6s %s\n", l.at.Seconds(), l.who, fmt.Sprintf(l.format, l.args...))
	}
	return b.String()
}

// logger returns a logger that writes a process's log into the journal; nil if that is not wanted.
func (j *journal) logger(who string, opts *Options) *slog.Logger {
	if !opts.Logs {
		return nil
	}
	return slog.New(slog.NewTextHandler(logLines{j, who}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type logLines struct {
	j   *journal
	who string
}

func (l logLines) Write(b []byte) (int, error) {
	_, text, _ := strings.Cut(string(b), "level=")
	l.j.say(l.who, "    %s", strings.TrimSpace(text))
	return len(b), nil
}
