// Command default is a program with the library's default client.
package main

import (
	"log"

	"github.com/goneli/neli"
	"github.com/goneli/neli/bench/footprint/program"
)

func main() {
	provider, err := neli.Confluent()
	if err != nil {
		log.Fatal(err)
	}
	program.Main(provider, true)
}
