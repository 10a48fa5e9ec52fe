package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Some seeds have a far member. It can be any of the members, and have any preferences.
func TestSomeSeedsHaveAFarMember(t *testing.T) {
	seen, near := map[any]bool{}, 0
	for seed := range uint64(120) {
		member, some := FarOf(seed, size.Members)
		if !some {
			near++
			continue
		}
		seen[member], seen[LeaningOf(seed)] = true, true
	}
	assert.Equal(t, 80, near)
	assert.Len(t, seen, size.Members+int(leanings))
}
