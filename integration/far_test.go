package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/testkit/witness"
)

// With T = 10 s, brokers with a round trip of half a second cause no trouble: there are no warnings, the first term
// lasts, and Close hands over.
func TestFarBrokers(t *testing.T) {
	const away, timeout, quiet = 500 * time.Millisecond, 10 * time.Second, 12 * time.Second
	e := newEnv(t, 1, 1, nil)
	e.session = 6 * time.Second
	p := e.proxy(t)
	require.NoError(t, p.Latency(away))
	for client := range clients {
		for _, nomination := range []neli.Nomination{neli.Open, neli.Assigned} {
			t.Run(client+", "+nomination.String(), func(t *testing.T) {
				t.Parallel()
				el := exclusive(t, e, nomination, timeout, func(c *contenderParams) { c.Client = client })
				el.start("first", through(p))
				old := el.leader(0, 2*firstLeader)
				second := el.start("second", through(p))
				el.follows(second)
				waitPast(t, witness.Now()+quiet)
				el.soleTerm(old)
				old.close(patience)
				el.leader(0, patience, old.member)
				for _, m := range el.members {
					assert.Zero(t, m.logged("level=WARN"), "%s warns", m)
				}
			})
		}
	}
}
