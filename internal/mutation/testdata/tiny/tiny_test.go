package tiny

import (
	"os"
	"strconv"
	"testing"
)

func TestClamp(t *testing.T) {
	if got := Clamp(5); got != 3 {
		t.Errorf("not clamped: %d", got)
	}
}

func TestSign(t *testing.T) {
	for n, want := range map[int]int{-7: -1, 0: 0, 7: 1} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			if got := Sign(n); got != want {
				t.Errorf("sign of %d is %d", n, got)
			}
		})
	}
}

func TestFirst(t *testing.T) {
	if i, j := First([][]int{{1, 2}, {2, 3}}, 2); i != 0 || j != 1 {
		t.Errorf("not the first: %d, %d", i, j)
	}
}

func TestGreet(t *testing.T) {
	if got := Greet(" you "); got != "hello you" {
		t.Errorf("greeted %q", got)
	}
}

// This test fails only with enough seeds.
func TestSeeds(t *testing.T) {
	seeds, _ := strconv.Atoi(os.Getenv("NELI_SEEDS"))
	for n := range seeds {
		if Sign(n) != min(n, 1) {
			t.Fatalf("wrong sign with seed %d", n)
		}
	}
}

func TestFails(t *testing.T) { t.Error("always") }
