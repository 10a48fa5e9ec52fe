package nelihttp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// commentEvery is the time between comments in a stream. They show proxies and the client that it is alive.
	commentEvery = 15 * time.Second
	// writeLimit is how long a client may take to accept a write.
	writeLimit = 10 * time.Second
	// numbersEvery is the least time between two events with numbers, if Standings are too many.
	numbersEvery = time.Second
	// retryAfter is how long clients should wait before they connect again.
	retryAfter = 2 * time.Second
)

// events serves one stream. An event "standing" has a current Standing with all its roles: first every
// one, then those that change. A role belongs to the newest Standing that has it. If there are
// too many Standings, events "standings" have only numbers. The last event is "end": this process is
// no longer live.
func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	if !h.tellsOfOthers(w) {
		return
	}
	head := w.Header()
	if r.Method != http.MethodGet { // only the status is asked for
		if h.feed.full() {
			tooMany(w)
			return
		}
		head.Set("Content-Type", "text/event-stream")
		return
	}
	run, leave, ok := h.feed.join()
	if !ok {
		tooMany(w)
		return
	}
	defer leave()
	head.Set("Content-Type", "text/event-stream")
	head.Set("X-Accel-Buffering", "no") // nginx would keep events back
	s := stream{w: w, to: http.NewResponseController(w)}
	s.begin()
	h.follow(r, run, &s)
	s.limit() // for the end of the answer, which the server writes
}

func tooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "10")
	fail(w, http.StatusServiceUnavailable, fmt.Sprintf("%d streams are open already, the most that are served", maxStreams))
}

// follow writes changes to a stream until it ends.
func (h *handler) follow(r *http.Request, run *feedRun, s *stream) {
	comment := time.NewTicker(commentEvery)
	defer comment.Stop()
	var told, numbers uint64 // the newest versions that were written, as Standings and as numbers
	for s.err == nil {
		changes, many, newest, news := run.since(told)
		for _, c := range changes {
			s.event("standing", c)
		}
		told = newest
		if many {
			told = 0 // if they become few again, write all of them
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
	select {
	case <-time.After(d):
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

// event writes v as the data of an event. JSON fits in one line.
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
	if s.err == nil {
		// Over HTTP/2 the server resets a stream when its deadline is over, even if nothing is being written.
		_ = s.to.SetWriteDeadline(time.Time{})
	}
}

// limit gives the client writeLimit for the next writes, until flush has returned, instead of the
// server's WriteTimeout for the whole answer. A server without deadlines cuts no client off.
func (s *stream) limit() {
	_ = s.to.SetWriteDeadline(time.Now().Add(writeLimit))
}
