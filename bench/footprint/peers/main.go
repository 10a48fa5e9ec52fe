// Command peers is a program without a broker. Its first argument has the addresses of the log hosts, separated by
// commas. The third argument, if given, is the number of the log host inside it.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/goneli/neli/bench/footprint/program"
	"github.com/goneli/neli/peers"
)

func main() {
	var c peers.Config
	for i, addr := range strings.Split(os.Args[1], ",") {
		c.Hosts = append(c.Hosts, peers.Host{ID: fmt.Sprint(i), Address: addr})
	}
	if len(os.Args) > 3 {
		c.Self = os.Args[3]
	}
	program.Main(peers.Provider(c), false)
}
