package request

import (
	"testing"

	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// A holder that waits for a successor's answer does not take what is said of a request for it.
func TestAnAnswerToARequestIsNoneToAHandover(t *testing.T) {
	rs := &Requests{}
	require.True(t, rs.Replied(0, &lease.Record{Kind: lease.Pong, Session: lease.Session{Process: "b"}, Ping: 4, Answer: &lease.Answer{}}, at(0)))
	require.False(t, rs.Replied(0, &lease.Record{Kind: lease.Pong, Session: lease.Session{Process: "b"}, Ping: 4}, at(0)))
}
