package nelihttp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a source whose answers a test sets.
type script struct {
	mode       neli.Mode
	nomination neli.Nomination
	stats      neli.Stats
	timeout    time.Duration // T; 0: 5 s
	members    []neli.Member
	led        map[int]int64 // role → token; 0: none
	ending     bool          // the term ends after IsLeader or Led is called once

	mu        sync.Mutex
	state     neli.State
	known     []neli.Standing
	changed   chan struct{} // one element for each Standing that Watch yields
	watches   int           // Watches that run
	looks     int           // calls of Standings
	asked     []string      // the changes that were requested
	refuse    error
	transfers func(context.Context) // called by Transfer
}

func newScript(known ...neli.Standing) *script {
	return &script{known: known, changed: make(chan struct{}, 1000)}
}

// standing returns a Standing. roles are ranges, holder is a name, "vacant" or "unknown".
func standing(partition int, roles, holder string, token int64) neli.Standing {
	text := map[string]any{"partition": partition, "roles": roles, "status": "held"}
	if holder == "vacant" || holder == "unknown" {
		text["status"] = holder
	} else {
		at := time.Now().Add(-90 * time.Minute)
		text["holder"] = map[string]any{"name": holder, "member": "id of " + holder, "token": token, "since": at, "age": 0.25}
	}
	var s neli.Standing
	b, err := json.Marshal(text)
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		panic(err)
	}
	return s
}

// become changes what is known, and makes Watch report it.
func (s *script) become(known ...neli.Standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = known
	s.changed <- struct{}{}
}

// end ends the process.
func (s *script) end(state neli.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.known = state, nil
	close(s.changed)
}

func (s *script) Config() neli.Config {
	return neli.Config{LeaderGroupID: "carts", Name: "a", Mode: s.mode, Nomination: s.nomination, HeartbeatTimeout: cmp.Or(s.timeout, 5*time.Second)}
}
func (s *script) Partitions() int        { return 1 }
func (s *script) Members() []neli.Member { return s.members }
func (s *script) Stats() neli.Stats      { return s.stats }
func (s *script) IsLeader() bool         { return len(s.leads()) > 0 }
func (s *script) Led() iter.Seq[int]     { return slices.Values(slices.Sorted(maps.Keys(s.leads()))) }

// leads returns led. If a test has set that the term ends after the next reading, it does.
func (s *script) leads() map[int]int64 {
	led := s.led
	if s.ending {
		s.led = nil
	}
	return led
}

func (s *script) State() neli.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

func (s *script) IsLeaderOf(role int) bool {
	_, ok := s.led[role]
	return ok
}

func (s *script) Token(role int) (int64, bool) {
	token, ok := s.led[role]
	return token, ok && s.mode == neli.Exclusive
}

func (s *script) Standings() []neli.Standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	return s.known
}

func (s *script) Holder(role int) (neli.Holder, bool) {
	for _, k := range s.Standings() {
		for r := range k.Roles() {
			if r == role && k.Status == neli.StatusHeld {
				return k.Holder, true
			}
		}
	}
	return neli.Holder{}, false
}

func (s *script) Watch(ctx context.Context) iter.Seq[neli.Standing] {
	return func(yield func(neli.Standing) bool) {
		s.mu.Lock()
		s.watches++
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			s.watches--
			s.mu.Unlock()
		}()
		for {
			select {
			case _, ok := <-s.changed:
				if !ok || !yield(neli.Standing{}) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// watching returns the number of Watches that run, in a bubble.
func (s *script) watching() int {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches
}

func (s *script) note(format string, args ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, fmt.Sprintf(format, args...))
	return s.refuse
}

func (s *script) StepDown(context.Context) error { return s.note("step down") }

func (s *script) Transfer(ctx context.Context, role int, to string) error {
	if s.transfers != nil {
		s.transfers(ctx)
	}
	return s.note("transfer %d to %s", role, to)
}

// ask sends a request to a handler, and returns the answer and its body.
func ask(t *testing.T, h http.Handler, method, target string, change ...func(*http.Request)) (*httptest.ResponseRecorder, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	r.Host = "127.0.0.1:8080"
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w, w.Body.String()
}

// jsonOf decodes an answer.
func jsonOf(t *testing.T, body string) map[string]any {
	t.Helper()
	require.Equal(t, 1, strings.Count(body, "\n"), "one line")
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &v), body)
	return v
}

var errScripted = errors.New("scripted")

// simulate runs a test in a bubble. No goroutine may be left at its end.
func simulate(t *testing.T, test func(*testing.T, *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newPipes()) })
}

// pipes is a network in memory, so that servers and clients live in simulated time. Nothing is
// buffered: a client that does not read blocks the writer at once.
type pipes struct {
	incoming chan net.Conn
	closing  chan struct{}
	once     sync.Once
}

func newPipes() *pipes {
	return &pipes{incoming: make(chan net.Conn), closing: make(chan struct{})}
}

var errNoServer = errors.New("no server")

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.incoming:
		return c, nil
	case <-p.closing:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closing) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.incoming <- there:
		return here, nil
	case <-p.closing:
		return nil, errNoServer
	}
}

// serve runs a server until the end of the test, and returns a client of it.
func (p *pipes) serve(t *testing.T, s *http.Server) *http.Client {
	t.Helper()
	var work sync.WaitGroup
	work.Go(func() { _ = s.Serve(p) })
	transport := &http.Transport{DialContext: p.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(t, s.Close())
		work.Wait()
		synctest.Wait()
	})
	return &http.Client{Transport: transport}
}
