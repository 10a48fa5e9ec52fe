package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

func TestASuspendedMemberServesNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := nelitest.NewBroker(nelitest.Options{})
		defer broker.Close()
		in, commands := io.Pipe()
		ended := make(chan error)
		var out strings.Builder
		m := &member{out: &out}
		cfg := neli.Config{Provider: broker.Provider("a"), LeaderGroupID: "shards", Name: "a", Roles: count}
		go func() { ended <- m.run(context.Background(), cfg, false, in) }()
		answers := func() string {
			fmt.Fprintln(commands, "requests 1", time.Now().UnixNano())
			synctest.Wait()
			m.mu.Lock()
			defer m.mu.Unlock()
			return strings.Fields(out.String()[strings.LastIndex(out.String(), "answered"):])[2]
		}
		time.Sleep(10 * time.Second)
		require.Equal(t, strings.Repeat("!", count), answers())
		broker.Freeze("a") // its program runs before its library does
		time.Sleep(10 * time.Second)
		require.Equal(t, strings.Repeat(".", count), answers())
		broker.Resume("a")
		require.NoError(t, commands.Close())
		require.NoError(t, <-ended)
	})
}

func TestASceneWithoutShardsEndsWithAnError(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.EqualError(t, play(ctx, "alone", []string{"-test.run", "^$", "--"}), "alone: shards are not served within a minute") // this program, without tests
}
