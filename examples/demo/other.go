//go:build !unix

// Command demo shows leader election at work. It needs a Unix: it suspends
// processes.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "demo: needs Linux, macOS or another Unix, because it suspends processes")
	os.Exit(1)
}
