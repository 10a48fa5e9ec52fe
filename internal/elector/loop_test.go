package elector

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// lastWord is a Nominator that keeps what it was told last.
type lastWord struct{ joins bool }

func (l *lastWord) Run(context.Context, func([]int, bool)) error { return nil }
func (l *lastWord) Join(yes bool)                                { l.joins = yes }
func (l *lastWord) Close()                                       {}

// onFirstLine is a log handler that calls a function when the first line is logged.
type onFirstLine struct {
	slog.Handler
	call func()
}

func (*onFirstLine) Enabled(context.Context, slog.Level) bool { return true }

func (h *onFirstLine) Handle(context.Context, slog.Record) error {
	if call := h.call; call != nil {
		h.call = nil
		call()
	}
	return nil
}

// While one goroutine carries out what a step has decided, others may take further steps. What the
// nominator was told last is the newest decision, whoever is done last.
func TestTheNominatorHearsTheNewestDecisionLast(t *testing.T) {
	now := clock.Alike(time.Hour)
	set := &Settings{Process: "a", Name: "a", Group: "g", T: time.Second, Nominated: true, Alive: func(clock.Instant) bool { return true }}
	terms := term.New(func(now, v clock.Instant) bool { return lease.Young(now, v, set.T) }, func() clock.Instant { return now })
	var nominator lastWord
	log := &onFirstLine{Handler: slog.DiscardHandler}
	e := NewElector(set, nil, &nominator, terms, func() clock.Instant { return now }, slog.New(log))
	log.call = func() {
		e.Set(Desired{Roles: 1, Contend: true})
		e.do(func(n *Node, now clock.Instant) { n.Tick(now) })
		require.True(t, nominator.joins)
	}
	e.do(func(n *Node, _ clock.Instant) { n.ready.note(slog.LevelInfo, "still idle") })
	require.True(t, nominator.joins, "the step that found this process idle is the older one")
}
