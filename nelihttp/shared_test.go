package nelihttp

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// A look that takes long is not repeated while it lasts, nor for twenty times as long after it, so that
// the library can read most of the time.
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
