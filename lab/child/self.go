//go:build unix

// Package child has both sides of a member process: a program executed again, which is told by its standard input what to
// do, reports by its standard output, and samples its own leadership in memory that it shares with its parent. So
// nothing that a member says is lost when it is killed, and nothing goes by a network that a test disturbs.
package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/witness"
)

// Files that a child gets beside its standard ones.
const (
	samplesFile = 3
	logFile     = 4
)

// Self is the child's own side.
type Self struct {
	in  *json.Decoder
	mu  sync.Mutex // one line after another
	out io.Writer
}

// Begin reads the child's parameters.
func Begin(params any) (*Self, error) {
	s := &Self{in: json.NewDecoder(os.Stdin), out: os.Stdout}
	if err := s.in.Decode(params); err != nil {
		return nil, fmt.Errorf("reading parameters: %w", err)
	}
	return s, nil
}

// Logger writes to the child's log.
func (s *Self) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.NewFile(logFile, "log"), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Obey carries out the parent's commands until do says that one was the last.
func Obey[Command any](s *Self, do func(Command) (last bool, err error)) error {
	for {
		var c Command
		if err := s.in.Decode(&c); errors.Is(err, io.EOF) {
			return errors.New("the parent is gone")
		} else if err != nil {
			return fmt.Errorf("reading a command: %w", err)
		}
		if last, err := do(c); last || err != nil {
			return err
		}
	}
}

// Tell reports a line, which is JSON. It is a single write, so that it survives SIGKILL.
func (s *Self) Tell(line any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := json.Marshal(line)
	if err == nil {
		_, err = s.out.Write(append(b, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("telling the parent: %v", err))
	}
}

// Event is an event of the application, as a child reports it.
type Event struct {
	What   string      `json:",omitempty"` // acquired, revoked or fenced
	Reason string      `json:",omitempty"`
	Terms  []neli.Term `json:",omitempty"`
}

// EventOf returns an event as a child reports it.
func EventOf(e neli.Event) Event {
	switch e := e.(type) {
	case neli.LeaderAcquired:
		return Event{"acquired", e.Reason.String(), e.Terms}
	case neli.LeaderRevoked:
		return Event{"revoked", e.Reason.String(), e.Terms}
	case neli.LeaderFenced:
		return Event{"fenced", e.Reason.String(), e.Terms}
	}
	return Event{}
}

// A Contender is a Neli whose leadership is sampled. Without a Neli the answer is always no.
type Contender struct {
	*neli.Neli
	Mode  neli.Mode
	Roles int
}

func (c Contender) answer(role int) int64 {
	if c.Neli == nil {
		return witness.No
	}
	if c.Mode == neli.NonExclusive {
		if c.IsLeaderOf(role) {
			return witness.NoToken
		}
		return witness.No
	}
	if token, ok := c.Token(role); ok {
		return token
	}
	return witness.No
}

// Notes that a child keeps beside its samples: how often all roles were sampled and, for each contender, how many records
// it has read, and when it read the last one.
const notePasses = 0

func noteRecords(contender int) int { return 1 + 2*contender }
func noteRead(contender int) int    { return 2 + 2*contender }

// Sample checks each millisecond whether the contenders lead each role, and once more when ctx ends. One reading of the
// clock ends a sample and begins the next.
func Sample(ctx context.Context, contenders ...Contender) error {
	samples, err := witness.Open(os.NewFile(samplesFile, "samples"))
	if err != nil {
		return err
	}
	current := make([][]int, len(contenders)) // by contender and role: the run that is going on
	for i, c := range contenders {
		for range c.Roles {
			current[i] = append(current[i], -1)
		}
	}
	records := make([]uint64, len(contenders))
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for passes, last := int64(1), false; !last; passes++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			last = true
		}
		before := witness.Now()
		for i, c := range contenders {
			for role := range c.Roles {
				answer := c.answer(role)
				after := witness.Now()
				current[i][role] = samples.Take(current[i][role], i, role, answer, witness.Window{Before: before, After: after})
				before = after
			}
			if c.Neli == nil || passes%10 != 0 && !last { // Stats takes longer than a sample
				continue
			}
			if now := c.Stats().Records; now != records[i] {
				records[i] = now
				samples.Note(noteRecords(i), int64(now))
				samples.Note(noteRead(i), int64(before))
			}
		}
		samples.Note(notePasses, passes)
	}
	return nil
}
