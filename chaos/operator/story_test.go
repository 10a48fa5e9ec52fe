package main

import (
	"encoding/json"
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

// A counter that starts again has grown by its new value.
func TestCountersGrow(t *testing.T) {
	var s series
	require.NoError(t, json.Unmarshal([]byte(`{"metric":{"instance":"a"},"values":[[1.5,"2"],[2.5,"3"],[3.5,"0"],[4.5,"1"]]}`), &s))
	require.Equal(t, "a", s.Metric["instance"])
	require.Equal(t, 2.0, s.grown())
}
