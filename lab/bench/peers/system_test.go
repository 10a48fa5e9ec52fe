package peers

import (
	"testing"

	"github.com/stretchr/testify/assert"
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
		assert.NotEmpty(t, s.Kinds, s.Name())
	}
}
