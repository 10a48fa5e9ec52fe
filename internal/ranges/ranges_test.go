package ranges

import "testing"

func TestRangesOfRoles(t *testing.T) {
	for want, c := range map[string]struct {
		roles []int
		max   int
	}{
		"":          {nil, 2},
		"3":         {[]int{3}, 2},
		"0-2,4":     {[]int{0, 1, 2, 4}, 2},
		"0,2,…":     {[]int{0, 2, 4, 6}, 2},
		"0,2,4,6-7": {[]int{0, 2, 4, 6, 7}, 0},
	} {
		if got := Of(c.roles, c.max); got != want {
			t.Errorf("%v: %q instead of %q", c.roles, got, want)
		}
	}
}
