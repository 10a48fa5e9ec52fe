//go:build unix

package main

import (
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/examples/internal/show"
	"github.com/goneli/neli/peers"
)

// timeout is T: a leader leads for this long after its last beat.
const timeout = time.Second

// member hosts a log and contends for all roles, until standard input says "close" or ends. "cut a,b" and
// "heal" change the network to other members.
func member(name, list string) error {
	net := newNetwork()
	c := peers.Config{Self: name, Dial: net.dial}
	addresses := map[string]string{}
	for host := range strings.SplitSeq(list, ",") {
		id, address, _ := strings.Cut(host, "=")
		addresses[id] = address
		c.Hosts = append(c.Hosts, peers.Host{ID: id, Address: address})
	}
	return show.Member(neli.Config{
		Provider:         peers.Provider(c),
		LeaderGroupID:    "demo-peers",
		Name:             name,
		HeartbeatTimeout: timeout,
		Logger:           slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}, func(order string) {
		_, names, _ := strings.Cut(order, " ")
		lost := map[string]bool{}
		for id := range strings.SplitSeq(names, ",") {
			lost[addresses[id]] = true
		}
		net.cut(lost)
	})
}
