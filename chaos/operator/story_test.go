package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/testkit/witness"
)

// Only the text between the marks is replaced.
func TestBetweenMarks(t *testing.T) {
	text, err := between("a\n"+beginMark+"\nold\n"+endMark+"\nb\n", "new\n")
	require.NoError(t, err)
	require.Equal(t, "a\n"+beginMark+"\n\nnew\n\n"+endMark+"\nb\n", text)
	again, err := between(text, "new\n")
	require.NoError(t, err)
	require.Equal(t, text, again)
	_, err = between("a\n"+beginMark+"\n", "new\n")
	require.Error(t, err)
}

func TestStoryInWords(t *testing.T) {
	s := story{preface: "Measured.", rows: []row{{what: "`kill -9` of `a`", clock: "21:50:01", idle: []witness.Span{{From: ms(1), To: ms(81)}},
		page: []sight{{0, "a"}, {100 * time.Millisecond, "b"}}, codes: []string{"137"}, lines: []string{"a  INFO  neli has ended with 137"},
		measured: measured{most: 1, margin: 0.25, ended: []string{"`a` closing"}}}}}
	text := s.markdown()
	require.Contains(t, text, "| `kill -9` of `a` | 21:50:01 | 0.08 s | 137 | `a`, after 0.10 s `b` | nobody leads in 0 scrapes, 1 at most in any; evidence at most 0.25 T old; terms ended: `a` closing; no alert |\n")
	require.Contains(t, text, "21:50:01 kill -9 of a\n  a  INFO  neli has ended with 137\n")
}

// A log that cannot be read to its end is an error: the document would lack lines without a word.
func TestALogIsReadToItsEnd(t *testing.T) {
	dir := t.TempDir()
	for _, name := range machineNames {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".log"), nil, 0o600))
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	line := at.Format("time="+time.RFC3339Nano) + ` level=INFO msg="neli has ended" code=137` + "\n"
	write := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "b.log"), []byte(text), 0o600))
	}
	d := &demonstration{site: &site{options: options{out: dir}}}
	a := &act{from: at, till: at}

	write("a panic\n" + line)
	codes, lines, err := d.logged(a)
	require.NoError(t, err)
	require.Equal(t, []string{"137"}, codes)
	require.Equal(t, []string{"b  INFO  neli has ended with 137"}, lines)

	write(strings.Repeat("x", bufio.MaxScanTokenSize) + "\n" + line)
	_, _, err = d.logged(a)
	require.ErrorIs(t, err, bufio.ErrTooLong)
	require.ErrorContains(t, err, "b.log")
}

// A counter that starts again has grown by its new value.
func TestCountersGrow(t *testing.T) {
	var s series
	require.NoError(t, json.Unmarshal([]byte(`{"metric":{"instance":"a"},"values":[[1.5,"2"],[2.5,"3"],[3.5,"0"],[4.5,"1"]]}`), &s))
	require.Equal(t, "a", s.Metric["instance"])
	require.Equal(t, 2.0, s.grown())
}
