package nelihttp

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Over HTTP/2 the server resets a stream when a deadline for writing is over, even if nothing is being
// written. A stream outlasts the time between two comments.
func TestAQuietStreamOverHTTP2Lasts(t *testing.T) {
	simulate(t, func(t *testing.T, net *pipes) {
		src := newScript(standing(0, "0", "a", 17))
		protocols := &http.Protocols{}
		protocols.SetUnencryptedHTTP2(true)
		client := net.serve(t, &http.Server{Handler: newHandler(src), WriteTimeout: 20 * time.Second, Protocols: protocols})
		client.Transport.(*http.Transport).Protocols = protocols
		l := listen(t, client)
		time.Sleep(time.Minute + time.Second)
		require.Equal(t, 4, state(l, func() int { return l.comments }))
		require.False(t, state(l, func() bool { return l.ended }), "nothing had to be written")
		src.become(standing(0, "0", "b", 21))
		time.Sleep(time.Second)
		require.Equal(t, []string{"0 held a", "0 held b"}, l.words(t))
	})
}
