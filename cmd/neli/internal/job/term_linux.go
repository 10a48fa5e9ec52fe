package job

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goneli/neli"
	"github.com/goneli/neli/cmd/neli/internal/guard"
	"github.com/goneli/neli/internal/inside"
)

// term is the command's run under one leadership.
type term struct {
	*contest
	l       neli.Leadership
	child   *child
	kill    <-chan time.Time // fires when the command's time to finish is over
	killAt  time.Time        // when kill fires; zero: the command has not been told to finish
	overdue bool             // the command was killed because that time was over
	asked   bool             // a signal asked for the end: this is the last run
	revoked bool             // leadership must be given up
	lost    bool             // leadership is over
}

// term runs the command until it has ended, along with everything that it started in its group.
func (c *contest) term(ctx context.Context, l neli.Leadership, signals <-chan struct{}) {
	var told *os.File
	if c.Guard != nil {
		file, over := c.Guard()
		told = file
		defer over()
	}
	child, err := startChild(c.Command, environment(c.Env, c.n, c.Topic, l), told, c.kin, c.Log)
	_ = told.Close() // the guard has its own
	if err != nil {
		c.finish(result{code: CodeFailure, err: err})
		return
	}
	t := &term{contest: c, l: l, child: child}
	t.renew()
	tick := time.NewTicker(min(max(c.n.Config().HeartbeatTimeout/20, 10*time.Millisecond), 500*time.Millisecond))
	defer tick.Stop()
	over := ctx.Done()
	for {
		select {
		case <-tick.C:
			t.renew()
		case <-signals:
			for _, s := range t.take() {
				t.signalled(s)
			}
		case <-over:
			over = nil
			t.withdrawn(context.Cause(ctx))
		case <-t.kill:
			c.Log.Warn("the command has not finished in time: killed")
			t.overdue = true
			t.child.kill()
		case <-t.child.ended:
			t.child.work.Wait()
			t.ended(t.child.report)
			return
		}
	}
}

// renew tells the guard until when the lease is certain to last. It reads the guard's clock first, so
// that the deadline is never too late.
func (t *term) renew() {
	now := guard.Now()
	if left := t.l.Remaining(); left > 0 {
		t.child.until(now + left)
	}
}

// signalled passes a signal on. The lease is kept until the command has ended.
func (t *term) signalled(s os.Signal) {
	number, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	if !ends(s) {
		t.child.signal(number)
		return
	}
	t.child.finish(number)
	if !t.asked {
		t.asked = true
		t.finishWithin(t.Drain)
	}
}

// finishWithin kills the command after d, or earlier if it was given less time before.
func (t *term) finishWithin(d time.Duration) {
	at := time.Now().Add(d)
	if t.killAt.IsZero() || at.Before(t.killAt) {
		t.killAt, t.kill = at, time.After(d)
	}
}

// withdrawn ends the command: at once if leadership is over, otherwise before the drain is over.
func (t *term) withdrawn(cause error) {
	if errors.Is(cause, neli.ErrFenced) {
		t.lost = true
		t.Log.Warn("leadership lost: killing the command")
		t.child.kill()
		return
	}
	t.revoked = true
	t.Log.Info("leadership revoked: the command is told to finish")
	t.child.finish(syscall.SIGTERM)
	t.finishWithin(t.Drain - min(killBefore, t.Drain/4))
}

// ended decides what comes after the command.
func (t *term) ended(r guard.Report) {
	withdrawn := t.lost || t.revoked || r.Late || r.Error != "" && r.Code == codeKilled
	t.tell(r)
	switch {
	case r.Group == 0 && r.Error != "" && !withdrawn:
		t.finish(result{code: r.Code, err: errors.New(r.Error)})
	case t.asked:
		t.finish(result{code: r.Code})
	case withdrawn && t.Once:
		t.finish(result{code: CodeLost, err: errors.New("leadership was lost")})
	case withdrawn && (t.lost || t.revoked):
		// The function of Lead returns, and this process contends again.
	case withdrawn, t.Keep: // this process still leads, and must give that up
		t.finish(result{again: true})
	default:
		t.finish(result{code: r.Code})
	}
}

// tell logs how the command ended, and why.
func (t *term) tell(r guard.Report) {
	log, cause := t.Log.Info, "by itself"
	switch {
	case t.lost: // before r.Error: kill may have killed the guard
		log, cause = t.Log.Warn, "leadership was lost"
	case t.overdue:
		log, cause = t.Log.Warn, "it did not finish in time"
	case r.Error != "":
		log, cause = t.Log.Error, r.Error
	case r.Late:
		log, cause = t.Log.Warn, "the lease was over"
	case t.asked:
		cause = "a signal asked for it"
	case t.revoked:
		cause = "leadership was revoked"
	case r.Signal != 0:
		cause = "killed by a signal"
	}
	args := []any{"code", r.Code, "cause", cause, "token", t.l.Token}
	if r.Signal != 0 {
		args = append(args, "signal", unix.SignalName(r.Signal))
	}
	log("the command has ended", args...)
}

// environment returns the command's environment. This program's variables replace those that an outer neli run set.
func environment(base []string, n *neli.Neli, topic string, l neli.Leadership) []string {
	member := ""
	for _, m := range n.Members() {
		if m.Self {
			member = m.ID
		}
	}
	own := []string{
		"NELI_TOKEN=" + strconv.FormatInt(l.Token, 10),
		"NELI_ROLE=" + strconv.Itoa(l.Role),
		"NELI_PARTITION=" + strconv.Itoa(l.Role%inside.Partitions(n)),
		"NELI_GROUP=" + n.Config().LeaderGroupID,
		"NELI_TOPIC=" + topic,
		"NELI_MEMBER=" + member,
		"NELI_NAME=" + n.Config().Name,
	}
	env := slices.DeleteFunc(slices.Clone(base), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.ContainsFunc(own, func(o string) bool { return strings.HasPrefix(o, name+"=") })
	})
	return append(env, own...)
}
