package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
)

// The end of check says what the user can do. It mentions things to fix above only if there are
// any.
func TestCheckConcludes(t *testing.T) {
	slow := neli.Timing{Count: 1, Sum: 2.5, Buckets: []neli.TimingBucket{{UpTo: 5 * time.Millisecond}, {UpTo: 2500 * time.Millisecond, Count: 1}}}
	once := neli.Timing{Count: 10, Sum: 3, Buckets: []neli.TimingBucket{{UpTo: 5 * time.Millisecond, Count: 9}, {UpTo: 2500 * time.Millisecond, Count: 10}}}
	for _, tc := range []struct {
		lines       []string
		lease       time.Duration
		trips       neli.Timing
		interrupted bool
		out, err    string
		code        int
	}{
		{lease: 5 * time.Second, trips: once, out: "should therefore be at least 3.57s"},
		{lease: 3 * time.Second, trips: once, out: "\nto fix: --timeout 3s is less than that\n", code: codeDoubts},
		{lease: 10 * time.Second, trips: slow, out: "should therefore be at least 10s"},
		{lease: 5 * time.Second, trips: slow, out: "\nto fix: --timeout 5s is less than four round trips: nobody would claim a role", code: codeDoubts},
		{lines: []string{"to fix: x"}, out: "to fix: x\n", err: "fix what is listed above", code: codeFailure},
		{lines: []string{"differs: x"}, out: "differs: x\n", err: "no error: try a longer --for", code: codeFailure},
		{lines: []string{"differs: x"}, interrupted: true, out: "differs: x\n", err: "check: interrupted before a written record came back", code: codeFailure},
		{interrupted: true, err: "check: interrupted before a written record came back", code: codeFailure},
		{err: "no error: try a longer --for", code: codeFailure},
	} {
		var out strings.Builder
		f := &findings{lines: tc.lines, lease: tc.lease}
		for _, line := range tc.lines {
			if strings.HasPrefix(line, "to fix: ") {
				f.doubts++
			}
		}
		err := f.conclude(&out, tc.trips, tc.interrupted)
		require.Contains(t, out.String(), tc.out)
		if tc.code == 0 {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, tc.err)
		e, ok := err.(exit)
		require.Equal(t, tc.code == codeDoubts, ok && e.code == codeDoubts)
	}
}

// neli check fails if it cannot print what it has found.
func TestCheckKeepsTheFirstErrorOfWriting(t *testing.T) {
	w := &checkedWriter{Writer: failing{"disk full", "closed"}}
	for range 2 {
		_, err := fmt.Fprintln(w, "a line")
		require.Error(t, err)
	}
	require.EqualError(t, w.err, "disk full")
}

// failing is a writer that fails with each of these in turn.
type failing []string

func (f failing) Write([]byte) (int, error) {
	err := errors.New(f[0])
	copy(f, f[1:])
	return 0, err
}
