package elector

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the transcripts anew: look at what has changed")

// TestTranscripts runs the scripts in testdata. It compares what was appended and told with
// what the script has below each command. A command is a line. Its expected output follows
// after "----", up to an empty line.
//
//	world [partitions [nominated] [small]]   begins again
//	start NAME... [roles=N] [priority=N]
//	pass DURATION
//	crash | cut | heal | deaf | close | stepdown | hang | wake NAME
//	hang | wake NAME later         its Node notices with its next step
//	cut NAME LOG                   its records do not arrive in this log
//	reread NAME LOG                its reader of a log is replaced
//	lose LOG                       a small log loses its records
//	nominate NAME [LOG...]         the partitions on which it may claim
//	unnominate NAME                it has lost the group's session
//	joins                          who takes part in the nominator's group
//	work NAME DURATION             how long its application takes to finish
//	roles NAME N                   SetRoles
//	transfer NAME ROLE TO
//	leads                          who leads what
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			out := runScript(t, string(text))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(out), 0o644))
				return
			}
			require.Equal(t, string(text), out)
		})
	}
}

// runScript returns the text with the actual outputs.
func runScript(t *testing.T, text string) string {
	t.Helper()
	w := newWorld(1)
	roles := 1
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line == "" || strings.HasPrefix(line, "#") {
			out.WriteString(line + "\n")
			continue
		}
		for i+1 < len(lines) && lines[i+1] != "" { // what is expected
			i++
		}
		out.WriteString(line + "\n----\n")
		words := strings.Fields(line)
		if words[0] == "world" {
			w = newWorld(number(t, append(words, "1")[1]))
			w.nominated, w.small = slices.Contains(words, "nominated"), slices.Contains(words, "small")
			continue
		}
		roles = command(t, w, words, roles)
		out.WriteString(w.take())
	}
	return out.String()
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	require.NoError(t, err)
	return d
}

func command(t *testing.T, w *world, words []string, roles int) int {
	t.Helper()
	switch words[0] {
	case "start":
		return startAll(t, w, words[1:], roles)
	case "pass":
		w.pass(duration(t, words[1]))
		return roles
	case "leads":
		w.flush()
		for _, a := range w.actors {
			if !a.dead {
				w.lines = append(w.lines, fmt.Sprintf("        %s leads %s", a.set.Name, list(a.leads(roles))))
			}
		}
		return roles
	case "joins":
		w.flush()
		for _, a := range w.actors {
			if !a.dead {
				w.lines = append(w.lines, fmt.Sprintf("        %s takes part: %v", a.set.Name, a.last.Join))
			}
		}
		return roles
	case "lose":
		w.lose(number(t, words[1]))
		return roles
	}
	a := w.actor(words[1])
	d := a.desired
	switch words[0] {
	case "crash":
		a.dead = true
	case "cut":
		if len(words) > 2 {
			a.cutFrom = map[int]bool{number(t, words[2]): true}
			break
		}
		a.cut = true
	case "deaf":
		a.deaf, a.cut = true, true
	case "heal":
		a.cut, a.cutFrom = false, nil
	case "reread":
		a.begin(number(t, words[2]))
	case "nominate":
		var logs []int
		for _, word := range words[2:] {
			logs = append(logs, number(t, word))
		}
		a.nominate(false, logs...)
	case "unnominate":
		a.nominate(true)
	case "hang", "wake":
		if a.alive = words[0] == "wake"; len(words) == 2 {
			a.do(a.Tick)
		}
	case "work":
		a.work = duration(t, words[2])
	case "close":
		d.Closing = true
		a.want(d)
	case "stepdown":
		d.Away = w.instant().Mono.Add(15 * time.Second)
		a.want(d)
	case "roles":
		d.Roles = number(t, words[2])
		a.want(d)
		return max(roles, d.Roles)
	case "transfer":
		a.do(func(now clock.Instant) {
			if _, err := a.Transfer(number(t, words[2]), words[3], now); err != nil {
				w.say("%s: refused: %v", words[1], err)
			}
		})
	default:
		t.Fatalf("unknown command %q", words[0])
	}
	return roles
}

func startAll(t *testing.T, w *world, words []string, roles int) int {
	t.Helper()
	priority := 0
	var names []string
	for _, word := range words {
		key, value, option := strings.Cut(word, "=")
		switch {
		case !option:
			names = append(names, word)
		case key == "roles":
			roles = number(t, value)
		case key == "priority":
			priority = number(t, value)
		default:
			t.Fatalf("unknown option %q", word)
		}
	}
	w.priority = priority
	for _, name := range names {
		w.start(name, roles, func(s *Settings) { s.Majority, s.Nominated = w.small, w.nominated })
	}
	return roles
}
