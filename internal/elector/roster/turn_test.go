package roster

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whoever is asked, all members have an order in which they answer, and each pair agrees on
// who comes first.
func TestTurnsDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, key := rapid.IntRange(2, 40).Draw(t, "members"), rapid.Uint64().Draw(t, "key")
		turns := map[time.Duration]bool{}
		first := 0
		for i := range n {
			ms := NewMembers()
			for k := range n {
				if k != i {
					ms.by[fmt.Sprint("p", k)] = &member{present: true}
				}
			}
			turn := ms.Turn(fmt.Sprint("p", i), key, false, 5*time.Second, 10*time.Millisecond, at(0))
			turns[turn] = true
			if turn == 0 {
				first++
			}
		}
		if first != 1 || len(turns) != n {
			t.Fatalf("%d of %d answer at once, there are %d turns", first, n, len(turns))
		}
	})
}
