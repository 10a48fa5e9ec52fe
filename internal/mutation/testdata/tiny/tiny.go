// Package tiny is a package to mutate.
package tiny

import (
	"fmt"
	"strings"
)

const limit = 3

// Clamp returns n, at most limit.
func Clamp(n int) int { return min(n, limit) }

// Sign returns -1, 0 or 1.
func Sign(n int) (s int) {
	switch {
	case n < 0:
		s = -1
	case n > 0:
		s = 1
	}
	return s
}

// First returns the indices of the first element equal to sum, in row order.
func First(rows [][]int, sum int) (i, j int) {
outer:
	for i = range rows {
		for j = range rows[i] {
			if rows[i][j] == sum {
				break outer
			}
		}
	}
	return i, j
}

// Greet says hello.
func Greet(name string) string {
	name = strings.TrimSpace(name)
	return fmt.Sprintf("hello %s", name)
}
