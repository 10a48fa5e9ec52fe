package nelihttp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/stretchr/testify/require"
)

// listener is a client that reads a stream of events as they come.
type listener struct {
	stop context.CancelFunc
	work sync.WaitGroup

	mu       sync.Mutex
	status   int
	header   http.Header
	events   []event
	comments int
	ended    bool
}

type event struct {
	id, name, data string
	at             time.Time
}

func listen(t *testing.T, client *http.Client) *listener {
	ctx, stop := context.WithCancel(context.Background())
	l := &listener{stop: stop}
	r, err := http.NewRequestWithContext(ctx, "GET", "http://a/events", nil)
	require.NoError(t, err)
	l.work.Go(func() {
		resp, err := client.Do(r)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		l.mu.Lock()
		l.status, l.header = resp.StatusCode, resp.Header
		l.mu.Unlock()
		l.read(resp.Body)
	})
	t.Cleanup(l.leave)
	return l
}

func (l *listener) read(body io.Reader) {
	var e event
	for lines := bufio.NewScanner(body); lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		l.mu.Lock()
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			switch {
			case value != "":
				l.comments++
			case e.name != "":
				e.at = time.Now()
				l.events = append(l.events, e)
				e = event{}
			}
		}
		l.mu.Unlock()
	}
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
}

func (l *listener) leave() {
	l.stop()
	l.work.Wait()
}

// words returns the events so far: their names, and for Standings the roles and holders.
func (l *listener) words(t *testing.T) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range l.events {
		require.Equal(t, fmt.Sprint(i+1), e.id, "ids have no gaps")
		if e.name != "standing" {
			out = append(out, e.name)
			continue
		}
		var s neli.Standing
		require.NoError(t, json.Unmarshal([]byte(e.data), &s), e.data)
		var roles []int
		for r := range s.Roles() {
			roles = append(roles, r)
		}
		out = append(out, strings.TrimSpace(fmt.Sprint(ranges(roles), " ", s.Status, " ", s.Holder.Name)))
	}
	return out
}

// state reads a field of l.
func state[T any](l *listener, of func() T) T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return of()
}

// A stream first reports everything that is known, then changes, in order. Each has all roles of the
// changed Standing.
func TestEventsReportChangesInOrder(t *testing.T) {
	simulate(t, func(t *testing.T, net *pipes) {
		src := newScript(standing(0, "0-3", "a", 17), standing(0, "4", "vacant", 0))
		l := listen(t, net.serve(t, &http.Server{Handler: newHandler(src)}))
		time.Sleep(time.Second)
		want := []string{"0-3 held a", "4 vacant"}
		require.Equal(t, want, l.words(t))
		head := state(l, func() http.Header { return l.header })
		require.Equal(t, "text/event-stream", head.Get("Content-Type"))
		require.Equal(t, "no", head.Get("X-Accel-Buffering"), "or nginx would keep events back")

		src.become(standing(0, "0-3", "a", 17), standing(0, "4", "vacant", 0)) // a beat
		time.Sleep(time.Second)
		require.Equal(t, want, l.words(t), "ages move, and nothing else")

		src.become(standing(0, "0,2-3", "a", 17), standing(0, "1,4", "vacant", 0))
		time.Sleep(time.Second)
		want = append(want, "0,2-3 held a", "1,4 vacant")
		require.Equal(t, want, l.words(t))

		began := time.Now()
		src.become(standing(0, "0-4", "b", 21))
		time.Sleep(time.Second)
		want = append(want, "0-4 held b")
		require.Equal(t, want, l.words(t))
		require.Equal(t, began, state(l, func() time.Time { return l.events[4].at }), "at once")

		for token := range int64(10) { // all ten changes between two looks
			src.become(standing(0, "0-4", "b", 30+token))
		}
		time.Sleep(time.Second)
		got := l.words(t)
		require.LessOrEqual(t, len(got), len(want)+2)
		require.Contains(t, state(l, func() string { return l.events[len(l.events)-1].data }), `"token":39`, "the last is told in any case")
	})
}

// Comments come every 15 s, so that proxies see that the stream lives.
func TestCommentsKeepAStreamAlive(t *testing.T) {
	simulate(t, func(t *testing.T, net *pipes) {
		src := newScript(standing(0, "0", "a", 17))
		l := listen(t, net.serve(t, &http.Server{Handler: newHandler(src), ReadTimeout: 20 * time.Second, WriteTimeout: 20 * time.Second}))
		time.Sleep(time.Hour + time.Second)
		require.Equal(t, 240, state(l, func() int { return l.comments }))
		require.False(t, state(l, func() bool { return l.ended }), "timeouts are for answers that end")
		require.Len(t, l.words(t), 1)
	})
}

// A stream ends with the process, and says so.
func TestEventsEndWithTheProcess(t *testing.T) {
	for _, end := range []neli.State{neli.StateClosed, neli.StateFailed} {
		simulate(t, func(t *testing.T, net *pipes) {
			src := newScript(standing(0, "0", "a", 17))
			client := net.serve(t, &http.Server{Handler: newHandler(src)})
			l := listen(t, client)
			time.Sleep(time.Second)
			src.end(end)
			time.Sleep(time.Second)
			require.True(t, state(l, func() bool { return l.ended }))
			require.Equal(t, []string{"0 held a", "end"}, l.words(t))
			require.Contains(t, state(l, func() string { return l.events[1].data }), end.String())
			again := listen(t, client)
			time.Sleep(time.Second)
			require.Equal(t, http.StatusServiceUnavailable, state(again, func() int { return again.status }))
		})
	}
}

// On small logs other processes do not know the token of a term, but two terms of one holder differ in
// when they began. A beat changes neither Standing, and a new term does.
func TestEventsOfTermsWithoutATokenOnSmallLogs(t *testing.T) {
	simulate(t, func(t *testing.T, net *pipes) {
		first, second := standing(0, "0", "a", 0), standing(0, "1", "a", 0)
		second.Holder.Since = first.Holder.Since.Add(time.Minute)
		src := newScript(first, second)
		l := listen(t, net.serve(t, &http.Server{Handler: newHandler(src)}))
		time.Sleep(time.Second)
		want := []string{"0 held a", "1 held a"}
		require.Equal(t, want, l.words(t))
		src.become(first, second) // a beat
		time.Sleep(time.Second)
		require.Equal(t, want, l.words(t))
		first.Holder.Since = time.Now()
		src.become(first, second)
		time.Sleep(time.Second)
		require.Equal(t, append(want, "0 held a"), l.words(t))
	})
}

// One Watch serves all streams, and only while there are some. Streams that end leave nothing behind.
func TestOneWatchForAllStreams(t *testing.T) {
	simulate(t, func(t *testing.T, net *pipes) {
		src := newScript(standing(0, "0", "a", 17))
		client := net.serve(t, &http.Server{Handler: newHandler(src)})
		require.Zero(t, src.watching())
		for range 3 {
			var all []*listener
			for range 20 {
				all = append(all, listen(t, client))
			}
			time.Sleep(time.Second)
			require.Equal(t, 1, src.watching())
			src.become(standing(0, "0", "b", 21))
			time.Sleep(time.Second)
			for _, l := range all {
				require.Equal(t, "0 held b", l.words(t)[len(l.words(t))-1])
			}
			for i, l := range all {
				require.Equal(t, 1, src.watching(), i)
				l.leave()
			}
			time.Sleep(time.Second)
			require.Zero(t, src.watching())
			src.become(standing(0, "0", "a", 17))
		}
	})
}

func TestTooManyStreams(t *testing.T) {
	simulate(t, func(t *testing.T, net *pipes) {
		src := newScript(standing(0, "0", "a", 17))
		client := net.serve(t, &http.Server{Handler: newHandler(src)})
		var all []*listener
		for range maxStreams {
			all = append(all, listen(t, client))
		}
		time.Sleep(time.Second)
		refused := listen(t, client)
		time.Sleep(time.Second)
		require.Equal(t, http.StatusServiceUnavailable, state(refused, func() int { return refused.status }))
		for _, method := range []string{"HEAD", "OPTIONS"} {
			r, err := http.NewRequestWithContext(t.Context(), method, "http://a/events", nil)
			require.NoError(t, err)
			resp, err := client.Do(r)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode, method)
		}
		all[7].leave()
		time.Sleep(time.Second)
		another := listen(t, client)
		time.Sleep(time.Second)
		require.Equal(t, []string{"0 held a"}, another.words(t))
	})
}

// A client that does not read is cut off. Meanwhile it delays no other client.
func TestSlowReaderIsCutOff(t *testing.T) {
	simulate(t, func(t *testing.T, net *pipes) {
		src := newScript(standing(0, "0", "a", 0))
		client := net.serve(t, &http.Server{Handler: newHandler(src)})
		slow, err := net.dial(t.Context(), "", "")
		require.NoError(t, err)
		defer slow.Close()
		_, err = io.WriteString(slow, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)

		quick := listen(t, client)
		for token := range int64(5) {
			time.Sleep(time.Second)
			src.become(standing(0, "0", "a", token+1))
		}
		time.Sleep(time.Second)
		require.Len(t, quick.words(t), 6)
		quick.leave()
		require.Equal(t, 1, src.watching(), "the slow one is still there")
		time.Sleep(writeLimit - 7*time.Second)
		require.Equal(t, 1, src.watching())
		time.Sleep(2 * time.Second)
		require.Zero(t, src.watching())
		_, err = io.ReadAll(slow)
		require.NoError(t, err, "its connection is closed")
	})
}

// A client that reads only now and then misses intermediate states, and gets the last one.
func TestLateReaderMissesIntermediateStates(t *testing.T) {
	simulate(t, func(t *testing.T, net *pipes) {
		src := newScript(standing(0, "0", "a", 0))
		net.serve(t, &http.Server{Handler: newHandler(src)})
		conn, err := net.dial(t.Context(), "", "")
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		for token := range int64(50) {
			src.become(standing(0, "0", "a", token+1))
			time.Sleep(100 * time.Millisecond)
		}
		text := make([]byte, 0, 10_000)
		for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
			require.NoError(t, conn.SetReadDeadline(deadline))
			part := make([]byte, 1000)
			n, _ := conn.Read(part)
			text = append(text, part[:n]...)
		}
		require.LessOrEqual(t, strings.Count(string(text), "event: standing"), 3)
		require.Contains(t, string(text), `"token":50`)
	})
}

// If there are more than 500 Standings, a stream has only numbers, at most once a second. Once they are
// few again, it has each of them.
func TestEventsOfManyGroups(t *testing.T) {
	simulate(t, func(t *testing.T, net *pipes) {
		src := crowd(501)
		l := listen(t, net.serve(t, &http.Server{Handler: newHandler(src)}))
		time.Sleep(time.Second)
		require.Equal(t, []string{"standings"}, l.words(t))
		data := state(l, func() string { return l.events[0].data })
		require.Contains(t, data, `"total":501`)
		require.Contains(t, data, `"held":1002`)
		require.Less(t, len(data), 10_000)
		for i := range 10 {
			src.become(crowd(510 + i).known...)
			time.Sleep(150 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		require.LessOrEqual(t, len(l.words(t)), 4)
		require.Contains(t, state(l, func() string { return l.events[len(l.events)-1].data }), `"total":519`)

		src.become(crowd(3).known...)
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"0,100000 held odd", "1,100001 held member 1", "2,100002 held member 2"}, l.words(t)[len(l.words(t))-3:])
	})
}

// Looks at very many roles are rare, so that they do not keep the library busy.
func TestExpensiveLooksAreRare(t *testing.T) {
	simulate(t, func(t *testing.T, net *pipes) {
		src := &slowScript{script: newScript(standing(0, "0", "a", 17))}
		l := listen(t, net.serve(t, &http.Server{Handler: newHandler(src)}))
		for token := range int64(600) {
			src.become(standing(0, "0", "a", token+1))
			time.Sleep(100 * time.Millisecond)
		}
		l.leave()
		src.mu.Lock()
		defer src.mu.Unlock()
		require.InDelta(t, time.Minute/(restPerLook+1)/(50*time.Millisecond), src.looks, 3)
	})
}

// slowScript is a process with so many roles that a look takes long.
type slowScript struct{ *script }

func (s *slowScript) Standings() []neli.Standing {
	time.Sleep(50 * time.Millisecond)
	return s.script.Standings()
}

// bare is the ResponseWriter of a middleware that hides the methods of the one below.
type bare struct{ http.ResponseWriter }

// If a ResponseWriter cannot flush, there can be no stream, and the request ends.
func TestStreamNeedsFlush(t *testing.T) {
	simulate(t, func(t *testing.T, _ *pipes) {
		src := newScript(standing(0, "0", "a", 17))
		h := newHandler(src)
		ask(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(bare{w}, r) }), "GET", "/events")
		require.Zero(t, src.watching())
	})
}
