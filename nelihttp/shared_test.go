package nelihttp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// crowdOfClients lets n clients ask for a path every 50 ms for ten seconds, and returns how often the
// library was asked meanwhile.
func crowdOfClients(t *testing.T, src source, looks func() int, n int, path string) int {
	t.Helper()
	h := newHandler(src)
	var work sync.WaitGroup
	for i := range n {
		work.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond)
			for range 200 {
				w, _ := ask(t, h, "GET", path)
				if w.Code != http.StatusOK {
					t.Errorf("%s: status %d", path, w.Code)
				}
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	work.Wait()
	return looks()
}

func (s *script) looked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks
}

// However many clients ask, the library is asked once per 100 ms.
func TestManyClientsShareOneLook(t *testing.T) {
	for _, path := range []string{"/", "/standings", "/?q=a", "/standings?q=0"} {
		for _, clients := range []int{1, 40} {
			t.Run(fmt.Sprint(path, " ", clients), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					src := newScript(standing(0, "0-3", "a", 17))
					looks := crowdOfClients(t, src, src.looked, clients, path)
					t.Logf("%d clients, %d requests: %d calls of Standings", clients, clients*200, looks)
					require.InDelta(t, 100, looks, 3, "ten a second, for ten seconds")
				})
			})
		}
	}
}

// A look that takes long is not repeated until twenty times its duration has passed since it began, so
// that the library can read most of the time.
func TestManyClientsShareAnExpensiveLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &slowScript{script: newScript(standing(0, "0", "a", 17))}
		require.LessOrEqual(t, crowdOfClients(t, src, src.looked, 40, "/"), 12, "50 ms of looking in a second, for ten seconds and a bit")
	})
}

// A page that is requested because of an event shows what the event reported, even if another client
// requested the page just before it.
func TestPageIsNoOlderThanTheEvent(t *testing.T) {
	simulate(t, func(t *testing.T, net *pipes) {
		src := newScript(standing(0, "0", "a", 17))
		h := newHandler(src)
		l := listen(t, net.serve(t, &http.Server{Handler: h}))
		time.Sleep(time.Second)
		_, page := ask(t, h, "GET", "/")
		require.Len(t, rowsOf(page), 1)
		src.become(standing(0, "0", "b", 21))
		synctest.Wait()
		require.Equal(t, "0 held b", l.words(t)[1])
		_, page = ask(t, h, "GET", "/")
		require.Contains(t, rowsOf(page)[0], "|b|")
	})
}

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

// With more than 4,096 roles, calls of Standings within T/50 share one look, which may be older than the change
// that Watch reported. The stream must report the new holder nevertheless.
func TestAStreamShowsTheLastChangeOfManyRoles(t *testing.T) {
	simulate(t, func(t *testing.T, net *pipes) {
		const roles = 5000
		b := nelitest.NewBroker(nelitest.Options{})
		t.Cleanup(b.Close)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 2)
		var members []*neli.Neli
		for _, name := range []string{"alice", "bob"} {
			n, err := neli.New(neli.Config{LeaderGroupID: "g", Name: name, Roles: roles, HeartbeatTimeout: 10 * time.Second, Provider: b.Provider(name)})
			require.NoError(t, err)
			members = append(members, n)
			go func() {
				ended <- n.Lead(ctx, func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); return nil })
			}()
			time.Sleep(time.Minute)
		}
		alice := members[0]
		role := slices.Collect(alice.Led())[0]
		l := listen(t, net.serve(t, &http.Server{Handler: Handler(alice)}))
		time.Sleep(time.Minute)

		require.NoError(t, alice.Transfer(ctx, role, "bob"))
		time.Sleep(time.Minute)
		holder, ok := alice.Holder(role)
		require.True(t, ok)
		require.Equal(t, "bob", holder.Name)
		said := ""
		for _, e := range state(l, func() []event { return slices.Clone(l.events) }) {
			var s neli.Standing
			require.NoError(t, json.Unmarshal([]byte(e.data), &s))
			if slices.Contains(slices.Collect(s.Roles()), role) {
				said = s.Status.String() + " " + s.Holder.Name
			}
		}
		l.leave()
		cancel()
		for range members {
			<-ended
		}
		for _, n := range members {
			require.NoError(t, n.Close())
		}
		require.Equal(t, "held bob", said, "what the stream said last of role %d", role)
	})
}
