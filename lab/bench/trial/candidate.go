// Package trial runs trials with groups of candidates: a leader is killed, stopped or closed, or a group starts.
package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"syscall"
	"time"

	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/witness"
)

// MemberCommand is the subcommand that makes this program a candidate.
const MemberCommand = "member"

// patience is how long a member may take for a command. Close may wait for a successor.
const patience = time.Minute

// candidate is a member process as the group sees it. The group's mutex guards track and what follows.
type candidate struct {
	*child.Process
	seat    int
	answers chan member.Line

	track   measure.Track
	samples int           // lines of samples
	ready   bool          // it has reported so
	closing time.Duration // when it began to close
	out     bool          // killed, stopped or told to close: it does not count as a member
}

// spawn starts a member on a seat.
func (g *Group) spawn(seat int) (*candidate, error) {
	g.mu.Lock()
	g.incarnation++
	incarnation := g.incarnation
	g.mu.Unlock()
	params, err := g.members.Params(seat, incarnation)
	if err != nil {
		return nil, err
	}
	params.Every = g.every
	if g.system.Sentinel {
		if params.Sentinel, err = g.guarded(params); err != nil {
			return nil, err
		}
	}
	c := &candidate{seat: seat, answers: make(chan member.Line, 1)}
	c.Process, err = g.place.Child(MemberCommand, g.name+"-"+params.Name, params, func(line []byte) error { return g.hear(c, line) })
	if c.Process == nil {
		return nil, err
	}
	g.mu.Lock()
	g.present = append(g.present, c)
	g.mu.Unlock()
	return c, err
}

// hear records what the member reports.
func (g *Group) hear(c *candidate, line []byte) error {
	var l member.Line
	if err := json.Unmarshal(line, &l); err != nil {
		g.note(func() { g.wrong = fmt.Errorf("reading a member's line %q: %w", line, err) })
		return err
	}
	g.note(func() {
		switch l.Say {
		case member.SaySample:
			c.track.Add(*l.Sample)
			c.samples++
		case member.SayReady:
			c.ready = true
		case member.SayClosing:
			c.closing = l.At
		}
	})
	if l.Say == member.SayDone {
		c.answers <- l
	}
	return nil
}

// do makes the member carry out a command.
func (c *candidate) do(ctx context.Context, command member.Command) (member.Line, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.Say(command); err != nil {
		return member.Line{}, err
	}
	select {
	case l := <-c.answers:
		return l, failed(command, l)
	case <-c.Done():
		select {
		case l := <-c.answers: // its last line
			return l, failed(command, l)
		default:
			return member.Line{}, fmt.Errorf("%s: the member has ended", command.Do)
		}
	case <-ctx.Done():
		return member.Line{}, fmt.Errorf("%s: %w", command.Do, ctx.Err())
	}
}

func failed(c member.Command, l member.Line) error {
	if l.Error != "" {
		return fmt.Errorf("%s: %s", c.Do, l.Error)
	}
	return nil
}

// signal sends a signal, and returns the time just before.
func (c *candidate) signal(s syscall.Signal) (time.Duration, error) {
	at := witness.Now()
	return at, c.Signal(s)
}
