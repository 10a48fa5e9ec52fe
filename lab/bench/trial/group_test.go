package trial

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/bench/member"
)

func led(spans ...measure.Span) *candidate {
	c := &candidate{track: measure.Track{Spans: spans}}
	for _, s := range spans {
		if !s.Open {
			c.track.Lost = append(c.track.Lost, s.To)
		}
	}
	return c
}

func span(from, to time.Duration) measure.Span { return measure.Span{First: from, From: from, To: to} }

func open(from, to time.Duration) measure.Span {
	return measure.Span{First: from, From: from, To: to, Open: true}
}

func resumed(from, to time.Duration) measure.Span {
	return measure.Span{First: from, From: from, To: to, Resumed: true}
}

func of(present ...*candidate) *Group {
	return &Group{calm: &sync.Mutex{}, changed: make(chan struct{}), present: present}
}

func TestAwaitLeader(t *testing.T) {
	old, out := led(open(15, 20)), led(open(12, 20))
	out.out = true
	first, second, former := led(span(14, 16)), led(open(18, 20)), led(span(1, 5))
	g := of(old, out, second, first, former)

	found, s, err := g.awaitLeader(t.Context(), 10, old)
	require.NoError(t, err)
	assert.Same(t, first, found, "the first that began since, even if it leads no more")
	assert.EqualValues(t, 14, s.From)

	now, err := g.leader(t.Context())
	require.NoError(t, err)
	assert.Same(t, old, now, "it leads now, and is not out")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = g.awaitLeader(ctx, 30, nil)
	assert.ErrorIs(t, err, context.Canceled)
}

func TestNewsWakeWaiters(t *testing.T) {
	g := of(led())
	go g.note(func() { g.present[0].track.Add(measure.Sample{Asked: 4, At: 5, Leads: true}) })
	found, s, err := g.awaitLeader(t.Context(), 0, nil)
	require.NoError(t, err)
	assert.Same(t, g.present[0], found)
	assert.EqualValues(t, 5, s.From)
}

func TestOverlapsLeaveOutThoseOfAWake(t *testing.T) {
	g := of(led(span(0, 10), resumed(30, 31)), led(open(20, 40)), led(span(5, 7)))
	g.past = []*measure.Track{{Spans: []measure.Span{span(50, 60)}}}
	terms, overlaps := g.overlaps()
	assert.Equal(t, 5, terms)
	assert.Equal(t, 1, overlaps, "5 to 7; not 30 to 31, which is reported as a wake")
}

func TestLosses(t *testing.T) {
	now := member.Now()
	began := now - time.Second
	g := of(led(open(now-500*time.Millisecond, now)), led(span(began-time.Second, now-600*time.Millisecond)), led(span(0, began-1)))
	l := g.Losses(began)
	assert.Equal(t, 1, l.Terms, "the one before does not count")
	assert.Equal(t, 100*time.Millisecond, l.Vacant)
	assert.Equal(t, 100*time.Millisecond, l.Longest)
	assert.Zero(t, l.Double)
	assert.Zero(t, l.Met)

	beside := led(span(now-400*time.Millisecond, now-370*time.Millisecond), span(now-200*time.Millisecond, now-190*time.Millisecond))
	g.past = append(g.past, &beside.track)
	l = g.Losses(began)
	assert.Equal(t, 3, l.Terms)
	assert.Equal(t, 40*time.Millisecond, l.Double, "of both terms together")
	assert.Equal(t, 1, l.Met, "one pair of members")
}

func TestWhole(t *testing.T) {
	there, gone := led(), led()
	there.heard, gone.heard = make(chan struct{}), make(chan struct{})
	g := of(there, gone)
	assert.NoError(t, g.Whole())
	close(gone.heard)
	gone.seat = 7
	assert.ErrorContains(t, g.Whole(), "seat 7")
}
