package idle

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUsage(t *testing.T) {
	began := time.Unix(0, 0)
	before := account{at: began, cpu: map[int]float64{7: 1}, sockets: map[uint64]socket{1: {100, 10, 50, 5}, 2: {9, 9, 9, 9}}}
	after := account{at: began.Add(2 * time.Second), cpu: map[int]float64{7: 1.5}, sockets: map[uint64]socket{1: {300, 14, 60, 7}, 3: {2, 2, 4, 2}}}
	m := used(before, after)
	assert.Equal(t, spent{cpu: 0.25, sentBytes: 101, sent: 3, gotBytes: 7, got: 2}, m, "a new socket counts, one that is gone does not")

	servers := spent{cpu: 0.5, sentBytes: 57, sent: 6}
	assert.Equal(t, Usage{Members: 3, MembersCPU: 0.25, ServersCPU: 0.5, Messages: 5, Bytes: 108, InnerMessages: 4, InnerBytes: 50},
		usage(3, true, m, servers), "what servers sent to members is not between servers")
	assert.Equal(t, Usage{Members: 3, MembersCPU: 0.25, Messages: 3, Bytes: 101}, usage(3, false, m, spent{}),
		"among members everything is sent by one of them")
}

func TestReadCountsAConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer out.Close()
	in, err := l.Accept()
	require.NoError(t, err)
	defer in.Close()

	self := []int{os.Getpid()}
	before, err := read(self)
	require.NoError(t, err)
	for range 3 {
		_, err = out.Write(make([]byte, 1000))
		require.NoError(t, err)
		_, err = in.Read(make([]byte, 1000))
		require.NoError(t, err)
	}
	var u spent
	require.Eventually(t, func() bool {
		after, err := read(self)
		require.NoError(t, err)
		after.at = before.at.Add(time.Second)
		u = used(before, after)
		return u.sentBytes >= 3000 // counted when acknowledged
	}, 5*time.Second, 5*time.Millisecond)
	assert.EqualValues(t, 3000, u.gotBytes)
	assert.EqualValues(t, 3, u.sent)
}
