package lease

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRoleSet(t *testing.T) {
	var s roleSet
	s.remove(7)
	assert.False(t, s.has(7), "an empty set has a role")
	for _, role := range []int32{0, 63, 64, 1000} {
		s.add(role)
	}
	var in []int32
	for role := range int32(2000) {
		if s.has(role) {
			in = append(in, role)
		}
	}
	assert.Equal(t, []int32{0, 63, 64, 1000}, in)
	s.remove(64)
	assert.False(t, s.has(64))
	assert.True(t, s.has(63))
}
