package handover

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/term"
	"github.com/stretchr/testify/require"
)

func TestHandoverDecides(t *testing.T) {
	const wait = 4 * time.Second
	fresh := Handover{since: at(0), chosen: at(0), why: term.Closing}
	asked := Handover{since: at(0), chosen: at(0), why: term.Closing, asked: true, deadline: at(10 * time.Second)}
	moved := Handover{since: at(0), chosen: at(0), why: term.Transferred}
	for _, c := range []struct {
		name  string
		h     Handover
		after time.Duration
		s     Conditions
		want  action
		due   time.Duration
	}{
		{"waits for a successor", fresh, 0, Conditions{}, Stay, wait},
		{"asks when the wait is over", fresh, wait, Conditions{Over: true}, Ask, wait},
		{"asks when a successor is ready", fresh, time.Second, Conditions{Ready: true}, Ask, wait},
		{"asks at once when nobody works", fresh, 0, Conditions{Idle: true}, Ask, wait},
		{"asks at once when nobody would take it", fresh, 0, Conditions{Refused: true}, Ask, wait},
		{"is called off when wanted again", fresh, time.Second, Conditions{Wanted: true}, CallOff, wait},
		{"even when a successor is ready", fresh, time.Second, Conditions{Wanted: true, Ready: true}, CallOff, wait},

		{"goes on though the roles could be kept", moved, time.Second, Conditions{Wanted: true}, Stay, wait},
		{"asks when who is meant is ready", moved, time.Second, Conditions{Wanted: true, Ready: true}, Ask, wait},
		{"even at the last moment", moved, wait, Conditions{Wanted: true, Ready: true, Over: true}, Ask, wait},
		{"is called off when that would not", moved, time.Second, Conditions{Wanted: true, Refused: true}, CallOff, wait},
		{"is called off when that is silent", moved, wait, Conditions{Wanted: true, Over: true}, CallOff, wait},
		{"unless the roles are not wanted any more", moved, wait, Conditions{Over: true}, Ask, wait},
		{"nor when that would not, then", moved, time.Second, Conditions{Refused: true}, Ask, wait},

		{"names another successor when that one would not", fresh, time.Second, Conditions{Refused: true, Another: true}, Rename, wait},
		{"or is silent", fresh, wait, Conditions{Over: true, Another: true}, Rename, wait},
		{"not while it may get ready", fresh, time.Second, Conditions{Another: true}, Stay, wait},
		{"nor if it is", fresh, time.Second, Conditions{Ready: true, Refused: true, Another: true}, Ask, wait},
		{"nor if nobody works", fresh, 0, Conditions{Refused: true, Idle: true, Another: true}, Ask, wait},
		{"nor for what is wanted again", fresh, time.Second, Conditions{Wanted: true, Refused: true, Another: true}, CallOff, wait},
		{"nor for what could be kept", moved, time.Second, Conditions{Wanted: true, Refused: true, Another: true}, CallOff, wait},
		{"nor once asked", asked, time.Second, Conditions{Refused: true, Another: true}, Stay, 10 * time.Second},

		{"asks once", asked, time.Second, Conditions{Ready: true}, Stay, 10 * time.Second},
		{"is not called off once asked", asked, time.Second, Conditions{Wanted: true, Refused: true}, Stay, 10 * time.Second},
		{"does not release while work goes on", asked, 10*time.Second - 1, Conditions{Ready: true, Idle: true, Over: true}, Stay, 10 * time.Second},
		{"is overdue at the deadline", asked, 10 * time.Second, Conditions{Ready: true}, Overdue, 10 * time.Second},
		{"with or without a successor", asked, 10 * time.Second, Conditions{Wanted: true}, Overdue, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, c.h.Decide(at(c.after), c.s))
			require.Equal(t, at(c.due).Mono, c.h.due(wait))
		})
	}
	for why, deliberate := range map[term.Reason]bool{term.Transferred: true, term.Rebalanced: true, term.Closing: false,
		term.SteppedDown: false, term.Unhealthy: false, term.Unassigned: false, term.Roles: false} {
		require.Equal(t, deliberate, (&Handover{why: why}).Deliberate(), why)
	}
}

// Only an answer to the present Ping counts, and only after that Ping was read back.
func TestAnAnswerToAnEarlierPingDoesNotCount(t *testing.T) {
	h := &Handover{to: "b", pinged: true, on: 2, ping: -1}
	hs := &Handovers{all: []*Handover{h}}
	hs.Ponged(2, 4, "b", at(0))
	require.False(t, h.answered, "the Ping was not read back yet")
	hs.Pinged(1, 7, "b", at(0))
	hs.Ponged(2, 7, "b", at(0))
	require.False(t, h.answered, "in another log")
	hs.Pinged(2, 7, "b", at(0))
	hs.Ponged(2, 4, "b", at(0))
	require.False(t, h.answered, "to an earlier one")
	hs.Ponged(2, 7, "c", at(0))
	require.False(t, h.answered, "another's")
	hs.Ponged(2, 7, "b", at(0))
	require.True(t, h.answered)
}
