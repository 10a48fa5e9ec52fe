package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// When a connection breaks, the client sends the command again over another one that is open. It must not do
// so if the term ended in between.
func TestNoCommandIsRepeatedAfterTheTerm(t *testing.T) {
	server := miniredis.RunT(t)
	broker := nelitest.NewBroker(nelitest.Options{})
	defer broker.Close()
	n, err := neli.New(neli.Config{LeaderGroupID: "asynq", Provider: broker.Provider("anna"), HeartbeatTimeout: 500 * time.Millisecond})
	require.NoError(t, err)
	defer n.Close()
	ctx, stop := context.WithCancel(t.Context())
	var sent error
	err = n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error {
		defer stop()
		client := redis.NewClient(&redis.Options{Addr: breaksOnce(t, server.Addr(), func() {
			broker.CutOff("anna", nelitest.LinkAll)
			<-ctx.Done()
		})})
		defer client.Close()
		client.AddHook(termHook{l})
		first, second := client.Conn(), client.Conn() // so that two are open
		for _, conn := range []*redis.Conn{first, second} {
			if err := conn.Ping(ctx).Err(); err != nil {
				return err
			}
		}
		if err := first.Close(); err != nil {
			return err
		}
		if err := second.Close(); err != nil {
			return err
		}
		sent = client.Set(context.WithoutCancel(ctx), "task", "report", 0).Err()
		return nil
	})
	require.NoError(t, err)
	require.False(t, server.Exists("task"), "it sends a command though its term is over")
	require.ErrorIs(t, sent, errOver)
}

// breaksOnce passes connections on to a Redis. It holds back the command that writes a task, calls meanwhile,
// and then breaks that connection.
func breaksOnce(t *testing.T, redis string, meanwhile func()) (address string) {
	l, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	var broken atomic.Bool
	pass := func(client, server net.Conn) {
		defer server.Close()
		buffer := make([]byte, 1<<16)
		for {
			n, err := client.Read(buffer)
			if err != nil {
				return
			}
			if bytes.Contains(buffer[:n], []byte("task")) && broken.CompareAndSwap(false, true) {
				meanwhile()
				return
			}
			_, _ = server.Write(buffer[:n])
		}
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", redis)
			if err != nil {
				client.Close()
				return
			}
			go func() {
				defer client.Close()
				_, _ = io.Copy(client, server)
			}()
			go pass(client, server)
		}
	}()
	return l.Addr().String()
}
