package peers_test

import (
	"log"

	"github.com/goneli/neli"
	"github.com/goneli/neli/peers"
)

// Each of three processes hosts one of the three logs. Two logs suffice for a leader.
func ExampleProvider() {
	n, err := neli.New(neli.Config{
		LeaderGroupID: "invoicing",
		Provider: peers.Provider(peers.Config{
			Hosts: []peers.Host{
				{ID: "a", Address: "a.example:7400"},
				{ID: "b", Address: "b.example:7400"},
				{ID: "c", Address: "c.example:7400"},
			},
			Self: "a", // "b" and "c" in the other processes
			TLS:  &peers.TLS{CertFile: "a.crt", KeyFile: "a.key", CAFile: "ca.crt"},
		}),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close()
}
