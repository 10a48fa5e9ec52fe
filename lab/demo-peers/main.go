//go:build unix

// Command demo-peers shows elections without a broker. Five processes run on one machine, each with a small
// log. A process leads the roles that it holds in three of the five logs. The demo kills a leader together
// with its log, suspends and wakes a process, restarts one with an empty log, partitions the network three
// to two, and measures what the members believed meanwhile.
// It needs a Unix, because it suspends processes.
//
//	go run ./demo-peers
package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/internal/show"
	"github.com/goneli/neli/peers"
)

// timeout is T: how long a lease lasts after the last beat.
const timeout = time.Second

func main() { show.Main("demo-peers", 24, member, tell) }

// member hosts a log and contends for all roles. args are the log hosts, name=address. The orders "cut a,b" and "heal" change
// the network to other members.
func member(name string) error {
	net := &network{}
	addresses := map[string]string{}
	return show.Member(func(args []string) neli.Config {
		c := peers.Config{Self: name, Dial: net.dial}
		for _, host := range args {
			id, address, _ := strings.Cut(host, "=")
			addresses[id] = address
			c.Hosts = append(c.Hosts, peers.Host{ID: id, Address: address})
		}
		return neli.Config{
			Provider:         peers.Provider(c),
			LeaderGroupID:    "demo-peers",
			Name:             name,
			HeartbeatTimeout: timeout,
			Logger:           slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		}
	}, func(order string) {
		_, names, _ := strings.Cut(order, " ")
		lost := map[string]bool{}
		for id := range strings.SplitSeq(names, ",") {
			lost[addresses[id]] = true
		}
		net.lost.Store(&lost)
	})
}

// logHosts returns log hosts on free ports. The ports are below those that the system uses for outgoing connections, so that
// they stay free while a host restarts.
func logHosts(names ...string) (hosts []string) {
	for len(hosts) < len(names) {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		if l, err := net.Listen("tcp", address); err == nil {
			defer l.Close() // all at the end, so that no port is used twice
			hosts = append(hosts, names[len(hosts)]+"="+address)
		}
	}
	return hosts
}

// network is a member's connection to the others. Everything to or from an address that is cut off is lost silently.
type network struct {
	lost atomic.Pointer[map[string]bool] // the addresses that are cut off; nil: none
}

func (n *network) loses(address string) bool {
	lost := n.lost.Load()
	return lost != nil && (*lost)[address]
}

// dial is for peers.Config.
func (n *network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if n.loses(address) {
		<-ctx.Done() // nobody answers
		return nil, ctx.Err()
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &wire{Conn: conn, net: n, to: address}, nil
}

// wire is a connection. Once something on it was lost, nothing more gets through.
type wire struct {
	net.Conn
	net  *network
	to   string
	dead atomic.Bool
}

func (w *wire) lost() bool {
	if w.net.loses(w.to) {
		w.dead.Store(true)
	}
	return w.dead.Load()
}

func (w *wire) Read(b []byte) (int, error) {
	for {
		n, err := w.Conn.Read(b)
		if err != nil || !w.lost() {
			return n, err
		}
	}
}

func (w *wire) Write(b []byte) (int, error) {
	if w.lost() {
		return len(b), nil
	}
	return w.Conn.Write(b)
}
