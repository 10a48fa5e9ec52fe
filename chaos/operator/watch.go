package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/goneli/neli/testkit/witness"
)

// How often pages are read, and how long an answer may take.
const (
	lookEvery = 100 * time.Millisecond
	lookLimit = 500 * time.Millisecond
)

// noAnswer stands for a page that cannot be reached.
const noAnswer = "no answer"

// sight is what a machine's page has shown from some time on: the holder of the role, or
// that there is none.
type sight struct {
	at    time.Duration
	shows string
}

// watch records what all pages showed.
type watch struct {
	s *site

	mu     sync.Mutex
	sights map[string][]sight // by machine, one for each change
}

// start reads the pages until ctx is done. The caller waits on the returned group.
func (w *watch) start(ctx context.Context) *sync.WaitGroup {
	var work sync.WaitGroup
	w.sights = map[string][]sight{}
	for _, name := range machineNames {
		work.Go(func() {
			tick := time.NewTicker(lookEvery)
			defer tick.Stop()
			for ctx.Err() == nil {
				w.saw(name, w.look(ctx, name))
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	return &work
}

func (w *watch) saw(name, shows string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if all := w.sights[name]; len(all) == 0 || all[len(all)-1].shows != shows {
		w.sights[name] = append(all, sight{witness.Now(), shows})
	}
}

// now returns what a page showed last.
func (w *watch) now(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.sights[name]
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1].shows
}

// between returns what a page showed in a span of time, with times since its beginning.
func (w *watch) between(name string, from, to time.Duration) (seen []sight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sights[name] {
		switch {
		case s.at <= from:
			seen = []sight{{0, s.shows}}
		case s.at <= to:
			seen = append(seen, sight{s.at - from, s.shows})
		}
	}
	return seen
}

// look reads what a page shows from its route /standings, which has it as JSON.
func (w *watch) look(ctx context.Context, name string) string {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.s.page(name)+"/standings", nil)
	if err != nil {
		return err.Error()
	}
	answer, err := w.s.client.Do(r)
	if err != nil {
		return noAnswer
	}
	defer answer.Body.Close()
	var body struct {
		Standings []struct {
			Status string
			Holder struct{ Name string }
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil || len(body.Standings) != 1 {
		return fmt.Sprint("status ", answer.StatusCode)
	}
	if s := body.Standings[0]; s.Status != "held" {
		return s.Status
	}
	return body.Standings[0].Holder.Name
}
