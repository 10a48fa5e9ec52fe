package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// With --allow-requests people can move leadership: the command then runs on the other machine, and
// has ended on the first.
func TestTransferAndStepDown(t *testing.T) {
	c := broker(t)
	run := func(name string) *process {
		return neli(t, c, "run", "--timeout", long.String(), "--allow-requests", "--name", name, "--", "sh", "-c", family)
	}
	one := run("one")
	one.says("token", 1)
	child := one.pid("child", 1)
	two := run("two")
	var p *process
	require.Eventually(t, func() bool { // until the holder knows the member
		p = neli(t, c, "transfer", "0", "two")
		return p.code() == 0
	}, soon, 100*time.Millisecond)
	require.Equal(t, []string{"role 0: handed over to two"}, p.output())
	two.says("token", 1)
	require.False(t, alive(child))
	child = two.pid("child", 1)

	p = neli(t, c, "step-down")
	require.Equal(t, 0, p.code())
	require.Equal(t, []string{"the holder of role 0 has stepped down"}, p.output())
	one.says("token", 2)
	require.False(t, alive(child))

	p = neli(t, c, "transfer", "one")
	require.Equal(t, 0, p.code(), p.errors.String())
	require.Equal(t, []string{"one already leads role 0"}, p.output())

	p = neli(t, c, "rebalance")
	require.Equal(t, 0, p.code(), p.errors.String())
	require.Equal(t, []string{"the holder of role 0 has shared out what exceeds its share"}, p.output())

	p = neli(t, c, "transfer", "nobody\x1b[2J")
	require.Equal(t, 1, p.code())
	require.Contains(t, p.errors.String(), "no such member")
	require.Equal(t, 1, strings.Count(p.errors.String(), "neli:"), p.errors.String())
	require.NotContains(t, p.errors.String(), "\x1b")

	two.signal(15)
	two.code()
	one.signal(15)
	require.Equal(t, 143, one.code())
	require.Equal(t, 3, neli(t, c, "step-down").code(), "nobody leads")
	require.Equal(t, 3, neli(t, c, "rebalance").code(), "nobody leads")
}

// A command that ignores TERM is killed before the drain is over. Until then the lease is kept, though the drain
// takes longer than T, and no other process runs the command. T is so long that no busy machine ends the lease.
func TestRevokedCommandIsKilledInTime(t *testing.T) {
	c := broker(t)
	t.Setenv("WITNESS", filepath.Join(t.TempDir(), "witness"))
	run := func(name string) *process {
		return neli(t, c, "run", "--timeout", medium.String(), "--allow-requests", "--once", "--drain", (medium * 3 / 2).String(), "--name", name, "--", "sh", "-c",
			`exec 9>>"$WITNESS"; flock -n 9 || { echo overlap; exit 99; }; trap 'echo asked' TERM; echo token $NELI_TOKEN; echo child $$; while :; do sleep 0.05; done`)
	}
	one := run("one")
	child := one.pid("child", 1)
	two := run("two")
	require.Eventually(t, func() bool { return neli(t, c, "transfer", "two").code() == 0 }, soon, 100*time.Millisecond)
	two.says("token", 1)
	require.False(t, alive(child))
	require.NotContains(t, two.output(), "overlap")
	require.Contains(t, one.output(), "asked")
	require.Equal(t, 122, one.code())
	one.logs("the command has not finished in time: killed")
	one.logs(`cause="it did not finish in time"`)
	require.NotContains(t, one.errors.String(), "leadership lost", "killed before that")
}

// The command's time to finish counts from TERM. A revocation that comes later does not extend it.
//
// With twenty seconds, and a revocation half-way, an extension is longer than any delay by a busy machine.
func TestRevocationAfterTERMDoesNotExtendTheDrain(t *testing.T) {
	t.Parallel()
	const drain = 20 * time.Second
	c := broker(t)
	one := neli(t, c, "run", "--timeout", medium.String(), "--allow-requests", "--drain", drain.String(), "--name", "one", "--", "sh", "-c",
		`trap 'echo asked now' TERM; echo child $$; while :; do sleep 0.05; done`)
	child := one.pid("child", 1)
	neli(t, c, "run", "--timeout", medium.String(), "--name", "two", "--", "sleep", "1000")
	require.Eventually(t, func() bool { // until the holder knows the other member
		p := neli(t, c, "status")
		p.code()
		return strings.Contains(strings.Join(p.output(), "\n"), "two")
	}, soon, 100*time.Millisecond)
	began := time.Now()
	one.signal(15)
	one.says("asked", 1)
	require.Never(t, func() bool { return !alive(child) }, drain/2, 10*time.Millisecond, "it has twenty seconds")
	neli(t, c, "transfer", "two")
	one.logs("leadership revoked: the command is told to finish")
	dead(t, soon, child)
	require.Less(t, time.Since(began), drain*5/4, "--drain is 20 s")
	one.logs(`cause="it did not finish in time"`)
	require.Equal(t, 137, one.code())
}

func TestRequestsAreRefusedByDefault(t *testing.T) {
	c := broker(t)
	holder := neli(t, c, "run", "--timeout", long.String(), "--", "sh", "-c", family)
	child := holder.pid("child", 1)
	for _, args := range [][]string{{"step-down"}, {"transfer", "0", "x"}, {"transfer", "--role", "0", "x"}, {"transfer", "--key", "k", "--slots", "1", "x"}} {
		p := neli(t, c, args...)
		require.Equal(t, 1, p.code(), "%v", args)
		require.Contains(t, p.errors.String(), "it takes no requests")
	}
	require.True(t, alive(child))
	for i, args := range [][]string{{"transfer"}, {"transfer", "x", "y"}, {"transfer", "-1", "y"}, {"transfer", "1", "2", "3"}, {"step-down", "x"}, {"step-down", "1", "2"},
		{"step-down", "--key", "k"}, {"step-down", "--slots", "3"}, {"step-down", "--role", "-3"}, {"step-down", "--wait", "-1s"}, {"transfer", ""}, {"rebalance", "x"}, {"rebalance", "--wait", "0s"}} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			p := neli(t, c, args...)
			require.Equal(t, 125, p.code(), strings.Join(args, " "))
			require.NotEmpty(t, p.errors.String())
		})
	}
}
