// Command franz is a program with franz-go, which needs no cgo.
package main

import (
	"github.com/goneli/neli/bench/footprint/program"
	"github.com/goneli/neli/franz"
)

func main() { program.Main(franz.Provider(), true) }
