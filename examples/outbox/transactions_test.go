package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/fence"
)

// refusing is a producer whose Init returns err.
type refusing struct {
	fence.Client[*kgo.Record]
	err error
}

func (r refusing) Init(context.Context) error { return r.err }

// A leader that cannot begin to publish says why, but not when a few attempts fail, as they do after each suspended leader.
func TestALeaderThatCannotBeginSaysWhy(t *testing.T) {
	var said strings.Builder
	var err error
	open := telling(func() (fence.Client[*kgo.Record], error) { return refusing{err: err}, nil }, slog.New(slog.NewTextHandler(&said, nil)))
	attempts := func(n int, with error) {
		err = with
		for range n {
			client, _ := open()
			require.Equal(t, with, client.Init(t.Context()))
		}
	}
	busy := errors.New("the coordinator is busy")
	attempts(usualAttempts, busy)
	attempts(1, nil)
	attempts(usualAttempts, busy)
	require.Empty(t, said.String())
	attempts(1, busy)
	require.Contains(t, said.String(), `attempts=6 error="the coordinator is busy"`)
}
