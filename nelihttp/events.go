package nelihttp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// commentEvery is the time between comments in a stream, by which proxies and
	// the client see that it lives.
	commentEvery = 15 * time.Second
	// writeLimit is how long a client may take to accept what is written.
	writeLimit = 10 * time.Second
	// numbersEvery is the time between two numbers of too many Standings.
	numbersEvery = time.Second
	// retryAfter is what clients are told to wait before they come back.
	retryAfter = 2 * time.Second
)

// events serves one stream. An event "standing" is a Standing as it is now, with all its
// roles: first each that is known, then those that have changed. Roles that another
// Standing had before belong to the newer one. An event "standings" has the numbers in
// place of too many. "end" tells that this process is not live any more, and is the last.
func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	if !h.tellsOfOthers(w) {
		return
	}
	head := w.Header()
	if r.Method != http.MethodGet {
		head.Set("Content-Type", "text/event-stream")
		return
	}
	run, leave, ok := h.feed.join()
	if !ok {
		head.Set("Retry-After", "10")
		fail(w, http.StatusServiceUnavailable, fmt.Sprintf("%d streams are served already", maxStreams))
		return
	}
	defer leave()
	head.Set("Content-Type", "text/event-stream")
	head.Set("X-Accel-Buffering", "no") // nginx would keep events back
	s := stream{w: w, to: http.NewResponseController(w)}
	s.begin()
	h.follow(r, run, &s)
}

// follow tells a stream of changes until it ends.
func (h *handler) follow(r *http.Request, run *feedRun, s *stream) {
	comment := time.NewTicker(commentEvery)
	defer comment.Stop()
	var told, numbers uint64 // the versions of which Standings, and numbers, were written
	for s.err == nil {
		changes, many, newest, news := run.since(told)
		for _, c := range changes {
			s.event("standing", c)
		}
		told = newest
		if many {
			told = 0 // should they become few, all of them are news
			if newest > numbers {
				numbers = newest
				o := look(h.src, h.known.get(), "")
				o.Standings = nil
				s.event("standings", o)
			}
		}
		s.flush()
		if many {
			pause(r, numbersEvery)
		}
		select {
		case <-news:
		case <-comment.C:
			s.comment()
		case <-r.Context().Done():
			return
		case <-run.ended:
			s.event("end", h.about())
			s.flush()
			return
		}
	}
}

func pause(r *http.Request, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	}
}

// stream writes server-sent events. After an error it writes nothing more.
type stream struct {
	w   io.Writer
	to  *http.ResponseController
	id  uint64
	err error
}

func (s *stream) begin() {
	s.write(fmt.Sprintf("retry: %d\n\n", retryAfter.Milliseconds()))
}

// event writes v as the data of an event, in one line, which JSON is.
func (s *stream) event(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		s.err = err
		return
	}
	s.id++
	s.write(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", s.id, name, data))
}

func (s *stream) comment() {
	s.write(": still here\n\n")
	s.flush()
}

func (s *stream) write(text string) {
	if s.err == nil {
		s.limit()
		_, s.err = io.WriteString(s.w, text)
	}
}

func (s *stream) flush() {
	if s.err == nil {
		s.limit()
		s.err = s.to.Flush()
	}
}

// limit gives the client some time for what is written next, in place of the server's
// WriteTimeout, which is for the whole answer. A server without deadlines cuts nobody off.
func (s *stream) limit() {
	_ = s.to.SetWriteDeadline(time.Now().Add(writeLimit))
}
