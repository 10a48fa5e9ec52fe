//go:build unix

package main

import (
	"context"
	"net"
	"sync/atomic"
)

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
