//go:build !race

package nelitest_test

// manySmallRoles is how many there are where there are very many.
const manySmallRoles = 100_000
