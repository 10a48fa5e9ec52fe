// Command neli runs commands under leader election, and shows who leads: see neli help.
package main

import (
	"os"

	"github.com/goneli/neli/cmd/neli/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
