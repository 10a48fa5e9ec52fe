package fence_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/goneli/neli/fence"
)

func admits(t require.TestingT, f *fence.Filter, topic string, partition int32, token int64, role int, group string) bool {
	ok, err := f.Admit(topic, partition, fence.Stamp(token, role, group))
	require.NoError(t, err)
	return ok
}

func TestFilterComparesTokensOfOneRoleInOnePartition(t *testing.T) {
	var f fence.Filter
	require.True(t, admits(t, &f, "a", 0, 5, 0, "g"))
	require.True(t, admits(t, &f, "a", 0, 5, 0, "g"), "the same term")
	require.True(t, admits(t, &f, "a", 0, 7, 0, "g"))
	require.False(t, admits(t, &f, "a", 0, 6, 0, "g"))
	require.False(t, admits(t, &f, "a", 0, 6, 0, "g"), "a refused token is the highest")
	require.True(t, admits(t, &f, "a", 0, 7, 0, "g"))
	require.True(t, admits(t, &f, "a", 1, 6, 0, "g"), "another partition")
	require.True(t, admits(t, &f, "b", 0, 6, 0, "g"), "another topic")
	require.True(t, admits(t, &f, "a", 0, 6, 1, "g"), "another role")
	require.True(t, admits(t, &f, "a", 0, 6, 0, "a b"), "another group")
}

func TestStateCoversOnePartition(t *testing.T) {
	var f, g fence.Filter
	admits(t, &f, "a", 0, 7, 0, "g")
	admits(t, &f, "a", 0, 3, 12, `g "h"`)
	admits(t, &f, "a", 1, 9, 0, "g")
	state := f.State("a", 0)
	require.JSONEq(t, `[{"t":7,"r":0,"g":"g"},{"t":3,"r":12,"g":"g \"h\""}]`, state)
	require.Equal(t, state, f.State("a", 0))
	require.NoError(t, g.Restore("a", 0, state))
	require.False(t, admits(t, &g, "a", 0, 6, 0, "g"))
	require.True(t, admits(t, &g, "a", 1, 6, 0, "g"), "what is not restored is new")
	require.NoError(t, g.Restore("a", 0, ""))
	require.True(t, admits(t, &g, "a", 0, 6, 0, "g"))
	require.ErrorContains(t, f.Restore("a", 0, "{"), "a/0")
	require.Equal(t, state, f.State("a", 0), "an error leaves it as it was")
}

func TestMalformedHeadersAreErrors(t *testing.T) {
	var f fence.Filter
	for _, header := range []string{"", "7", "7 0", "x 0 g", "7 x g", "+7 0 g", "07 0 g", " 7 0 g", "9223372036854775808 0 g", "7 0 \xff"} {
		ok, err := f.Admit("a", 0, []byte(header))
		require.False(t, ok)
		require.ErrorContains(t, err, fence.Header, "%q", header)
	}
	require.Equal(t, "[]", f.State("a", 0))
}

// A writer may put a megabyte into a header, and a group's coordinator keeps any text. A log line
// shows only a part of it.
func TestErrorsShowOnlyPartOfALongHeader(t *testing.T) {
	var f fence.Filter
	for _, long := range []string{strings.Repeat("x", 1<<20), strings.Repeat("\xff", 1<<20)} {
		_, err := f.Admit("a", 0, []byte(long))
		require.Less(t, len(err.Error()), 1000)
		require.ErrorContains(t, err, "1048576 bytes")
	}
	for _, long := range []string{strings.Repeat("x", 1<<20), `[{"t":` + strings.Repeat("1", 1<<20) + "}]"} {
		err := f.Restore("a", 0, long)
		require.Error(t, err)
		require.Less(t, len(err.Error()), 1000)
	}
}

// A role takes at most a fixed number of bytes of the state, besides its group's name. Users who
// keep the state as an offset's metadata rely on that.
func TestSizeOfTheStateIsBounded(t *testing.T) {
	var f fence.Filter
	size := len(f.State("a", 0))
	for role := 999_998; role < 1_000_000; role++ {
		admits(t, &f, "a", 0, math.MaxInt64, role, "invoicing")
	}
	require.Equal(t, size+2*(44+len("invoicing"))-len(","), len(f.State("a", 0)))
}

func TestFilterRestoresAnyStamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f, g fence.Filter
		token, role, group := rapid.Int64().Draw(t, "token"), rapid.Int().Draw(t, "role"), rapid.String().Draw(t, "group")
		require.True(t, admits(t, &f, "a", 0, token, role, group))
		require.NoError(t, g.Restore("a", 0, f.State("a", 0)))
		require.True(t, admits(t, &g, "a", 0, token, role, group))
	})
}
