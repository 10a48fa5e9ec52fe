//go:build !unix

// Command demo-peers shows elections without a broker. It needs a Unix: it suspends
// processes.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "demo-peers: needs Linux, macOS or another Unix, because it suspends processes")
	os.Exit(1)
}
