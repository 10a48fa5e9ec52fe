package peers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/kafkatest"
)

func systems(beds []Bed) (all []System) {
	for _, b := range beds {
		all = append(all, b.Systems...)
	}
	return all
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range systems(Beds()) {
		assert.False(t, seen[s.Name()], s.Name())
		seen[s.Name()] = true
		if s.Kinds == nil {
			assert.NotEmpty(t, s.Idle, "%s: neither trials nor cost", s.Name())
		}
	}
}

func TestFirstMemberIsPreferred(t *testing.T) {
	g := manyRoles("1 broker", 5*time.Second).Members(Kafka{new(kafkatest.Cluster)}, "g")
	before, err := g.Params(2, 1)
	require.NoError(t, err)
	later, err := g.Params(0, 4)
	require.NoError(t, err)
	assert.Greater(t, before.Priority, later.Priority)
	assert.Equal(t, Roles, later.Roles)
}

func TestEveryMemberIsGivenTheNumberOfLogs(t *testing.T) {
	s := LogsSystem("3 brokers", 3, 500*time.Millisecond)
	p, err := s.Members(Kafka{new(kafkatest.Cluster)}, "g").Params(2, 1)
	require.NoError(t, err)
	assert.Equal(t, 3, p.Logs)
	assert.Equal(t, 500*time.Millisecond, p.Lease)
	assert.Equal(t, "neli, 3 brokers, Open, T = 500ms, Logs: 3", s.Name())
}
