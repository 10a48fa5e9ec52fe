package peers

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/bench/member"
)

func TestOneMemberUsesTheSlowerWay(t *testing.T) {
	g := mixed{ranked{plain{member.Params{Servers: []string{"near"}}}}, "far"}
	for seat := range Size {
		p, err := g.Params(seat, 7)
		require.NoError(t, err)
		assert.Equal(t, []string{map[bool]string{true: "far", false: "near"}[seat == farSeat]}, p.Servers)
		assert.Equal(t, -7, p.Priority)
	}
	assert.Equal(t, farSeat, farBed().Systems[0].Far)
}
