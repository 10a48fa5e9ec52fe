//go:build race

package nelitest_test

// manySmallRoles is fewer than without the race detector, which takes ten times as long.
const manySmallRoles = 10_000
