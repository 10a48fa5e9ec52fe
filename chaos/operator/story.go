package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli/testkit/kafkatest"
	"github.com/goneli/neli/testkit/witness"
)

// The documents that the demonstration writes.
const (
	document     = "docs/operations.md"
	pagePicture  = "docs/operator-page.png"
	graphPicture = "docs/operator-prometheus.png"

	beginMark = "<!-- make demo-operator: begin -->"
	endMark   = "<!-- make demo-operator: end -->"

	maxPicture = 150_000 // bytes
)

// story is what was observed, for readers.
type story struct {
	preface  string
	overlaps int
	rows     []row
}

// row is one fault.
type row struct {
	what  string
	clock string // UTC, as in Prometheus' graphs
	idle  []witness.Span
	page  []sight // of a machine that was not struck
	codes []string
	measured
	lines []string // from logs
}

// tell composes the story from what was observed.
func (d *demonstration) tell(ctx context.Context) (*story, error) {
	f, err := os.Open(d.witness)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	stints, err := readStints(f)
	if err != nil {
		return nil, err
	}
	s := &story{overlaps: overlaps(stints)}
	once := "never ran two at once"
	if s.overlaps > 0 {
		once = fmt.Sprintf("**ran two at once %d times**", s.overlaps)
	}
	s.preface = fmt.Sprintf("Measured by `make demo-operator` on %s, commit %s: T = %v, Kafka %s, Prometheus scraping each second, %d cores. There were %d jobs, one after the other, which %s.",
		d.began.UTC().Format("2006-01-02"), revision(ctx, d.root), timeout, kafkatest.KafkaVersion, runtime.NumCPU(), len(stints), once)
	for _, a := range d.acts {
		r := row{what: fmt.Sprintf(a.what, a.machine), clock: a.from.UTC().Format("15:04:05"), idle: idle(stints, a.Span),
			page: d.watch.between(d.other(a.machine), a.From, a.To)}
		if r.measured, err = d.measure(ctx, a.from, a.till); err != nil {
			return nil, err
		}
		if r.codes, r.lines, err = d.logged(a); err != nil {
			return nil, err
		}
		s.rows = append(s.rows, r)
	}
	return s, nil
}

// drawn is Prometheus' own picture of the whole time.
func (d *demonstration) drawn() ([]byte, error) {
	address, ready := graphs(d.desk.urls[hostMonitor], time.Since(d.began),
		"max by (instance) (neli_is_leader)", "max by (instance) (neli_evidence_age_seconds / neli_heartbeat_timeout_seconds)")
	return d.desk.picture(address, 1640, ready) // high enough for the whole page
}

// markdown is the generated part of the document.
func (s *story) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| fault | at | no job for | exit code | the page of another machine | Prometheus |\n|---|---|---|---|---|---|\n", s.preface)
	for _, r := range s.rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.what, r.clock, r.pause(), orDash(r.codes), r.shown(), r.measured)
	}
	b.WriteString("\nWhat was logged, each line once:\n\n```text\n")
	for _, r := range s.rows {
		fmt.Fprintf(&b, "%s %s\n", r.clock, strings.ReplaceAll(r.what, "`", ""))
		for _, l := range r.lines {
			fmt.Fprintf(&b, "  %s\n", l)
		}
	}
	b.WriteString("```\n")
	return b.String()
}

func (r row) pause() string {
	var parts []string
	for _, s := range r.idle {
		parts = append(parts, seconds(s.Length()))
	}
	if parts == nil {
		return "–"
	}
	return strings.Join(parts, " + ")
}

// shown describes what the page showed, and when that changed.
func (r row) shown() string {
	var parts []string
	for i, s := range r.page {
		if i == 0 {
			parts = append(parts, "`"+s.shows+"`")
			continue
		}
		parts = append(parts, fmt.Sprintf("after %s `%s`", seconds(s.at), s.shows))
	}
	return strings.Join(parts, ", ")
}

func (m measured) String() string {
	parts := []string{fmt.Sprintf("nobody leads in %d scrapes, %.0f at most in any", m.leaderless, m.most), fmt.Sprintf("evidence at most %.2f T old", m.margin)}
	if m.downs != nil {
		parts = append(parts, "`up` is 0: "+strings.Join(m.downs, ", "))
	}
	if m.ended != nil {
		parts = append(parts, "terms ended: "+strings.Join(m.ended, ", "))
	}
	if m.alerts == nil {
		parts = append(parts, "no alert")
	} else {
		parts = append(parts, "alerts: "+strings.Join(m.alerts, ", "))
	}
	return strings.Join(parts, "; ")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func orDash(parts []string) string {
	if len(parts) == 0 {
		return "–"
	}
	return strings.Join(parts, ", ")
}

var (
	logLine = regexp.MustCompile(`^time=(\S+) level=(\S+) msg=("(?:[^"\\]|\\.)*"|\S+)(.*)$`)
	// dull matches messages that come at every start.
	dull = regexp.MustCompile(`^"?(starting|serving |created |waiting )`)
	// term matches the attributes of an event that identify its term, and its reason.
	term = regexp.MustCompile(` (reason|role|partition|token)=\S+`)
	code = regexp.MustCompile(` code=(\d+)`)
)

// logged is what supervisors and electors logged during an act: exit codes, and lines.
func (d *demonstration) logged(a *act) (codes, lines []string, _ error) {
	for _, name := range machineNames {
		f, err := os.Open(filepath.Join(d.out, name+".log"))
		if err != nil {
			return nil, nil, err
		}
		in := bufio.NewScanner(f)
		for in.Scan() {
			m := logLine.FindStringSubmatch(in.Text())
			if m == nil || dull.MatchString(m[3]) {
				continue
			}
			at, parseErr := time.Parse(time.RFC3339Nano, m[1])
			if parseErr != nil || at.Before(a.from) || at.After(a.till) {
				continue
			}
			text := strings.Trim(m[3], `"`)
			if c := code.FindStringSubmatch(m[4]); c != nil && text == endedLine {
				codes = append(codes, c[1])
				text += " with " + c[1]
			}
			if strings.HasPrefix(text, "leader ") {
				text += strings.Join(term.FindAllString(m[4], -1), "")
			}
			if line := fmt.Sprintf("%s  %-5s %s", name, m[2], text); !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
		if err := errors.Join(in.Err(), f.Close()); err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", f.Name(), err)
		}
	}
	return codes, lines, nil
}

// publish writes pictures and document.
func (d *demonstration) publish(s *story) error {
	graph, err := d.drawn()
	if err != nil {
		return err
	}
	for file, picture := range map[string][]byte{pagePicture: d.shot, graphPicture: graph} {
		if len(picture) > maxPicture {
			return fmt.Errorf("%s has %d bytes, but a picture may have at most %d", file, len(picture), maxPicture)
		}
		if err := os.WriteFile(filepath.Join(d.root, file), picture, 0o644); err != nil {
			return err
		}
	}
	file := filepath.Join(d.root, document)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	changed, err := between(string(text), s.markdown())
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	return os.WriteFile(file, []byte(changed), 0o644)
}

// between puts a text between the marks of a document.
func between(document, text string) (string, error) {
	head, rest, begins := strings.Cut(document, beginMark)
	_, tail, ends := strings.Cut(rest, endMark)
	if !begins || !ends {
		return "", fmt.Errorf("the marks %s and %s are missing", beginMark, endMark)
	}
	return head + beginMark + "\n\n" + text + "\n" + endMark + tail, nil
}
