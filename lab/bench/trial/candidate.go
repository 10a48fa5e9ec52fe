// Package trial runs trials with groups of candidates: one of them is killed, stopped or closed, or a fourth one joins.
package trial

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/nursery"
)

// MemberCommand is the subcommand that makes this program a candidate.
const MemberCommand = "member"

// patience is how long a member may take for a command. Close may wait for a successor.
const patience = time.Minute

// candidate is a member process as the group sees it. The group's mutex guards track and what
// follows.
type candidate struct {
	seat    int
	process *nursery.Process
	in      io.WriteCloser
	answers chan member.Line
	heard   chan struct{} // closed at the end of its output

	track   measure.Track
	samples int           // lines of samples
	ready   bool          // it has reported so
	closing time.Duration // when it was told to close
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
	cmd, err := peers.Self(MemberCommand)
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// This is not cmd.StdoutPipe, which Wait closes: the last lines could be lost.
	out, mouth, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer mouth.Close() // the process has its own descriptor
	log, err := os.OpenFile(filepath.Join(g.place.Dir, g.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = mouth, log
	c := &candidate{seat: seat, in: in, answers: make(chan member.Line, 1), heard: make(chan struct{})}
	if c.process, err = g.place.Start(cmd); err != nil {
		_ = out.Close()
		return nil, err
	}
	g.mu.Lock()
	g.present = append(g.present, c)
	g.mu.Unlock()
	go g.listen(c, out)
	return c, c.tell(params)
}

// listen records what the member reports, until it ends.
func (g *Group) listen(c *candidate, from io.ReadCloser) {
	defer from.Close()
	defer close(c.heard)
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var l member.Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			g.note(func() { g.wrong = fmt.Errorf("reading a member's line %q: %w", lines.Text(), err) })
			return
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
	}
}

func (c *candidate) tell(what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = c.in.Write(append(text, '\n'))
	return err
}

// do makes the member carry out a command.
func (c *candidate) do(ctx context.Context, command member.Command) (member.Line, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.tell(command); err != nil {
		return member.Line{}, err
	}
	select {
	case l := <-c.answers:
		return l, failed(command, l)
	case <-c.heard:
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

// learnt asks how long the member took to learn who leads. It returns nothing if the member does
// not report that.
func (c *candidate) learnt(ctx context.Context) (member.Learnt, error) {
	l, err := c.do(ctx, member.Command{Do: member.DoLearnt})
	if err != nil || l.Learnt == nil {
		return member.Learnt{}, err
	}
	return *l.Learnt, nil
}

func failed(c member.Command, l member.Line) error {
	if l.Error != "" {
		return fmt.Errorf("%s: %s", c.Do, l.Error)
	}
	return nil
}

// signal sends a signal, and returns the time just before.
func (c *candidate) signal(s syscall.Signal) (time.Duration, error) {
	at := member.Now()
	return at, c.process.Signal(s)
}
