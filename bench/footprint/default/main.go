// Command default is a program with the library's default client.
package main

import (
	"github.com/goneli/neli"
	"github.com/goneli/neli/bench/footprint/program"
)

func main() { program.Main(neli.Confluent(), true) }
