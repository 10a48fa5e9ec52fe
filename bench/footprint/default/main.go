// Command default is a program with the library's default client.
package main

import (
	"log"

	"github.com/goneli/neli/bench/footprint/program"
	"github.com/goneli/neli/internal/confluent"
)

func main() {
	provider, err := confluent.New()
	if err != nil {
		log.Fatal(err)
	}
	program.Main(provider, true)
}
