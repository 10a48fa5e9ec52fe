package handover

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An answer to a Ping that came before the Ping says nothing of now.
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
