package elector

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// closers starts n processes that share ten roles each.
func closers(t *testing.T, w *world, n int) {
	t.Helper()
	for i := range n {
		w.start(fmt.Sprint("p", i), 10*n, nil)
	}
	w.pass(10 * time.Second)
	for _, a := range w.actors {
		require.NotEmpty(t, a.leads(10*n), a.set.Name)
	}
}

// count is how many records of a kind are in the log from an offset on.
func (w *world) count(k lease.Kind, from int) (n int) {
	for _, r := range w.logs[0][from:] {
		if r.Kind == k {
			n++
		}
	}
	return n
}

// When a crowd closes together, each process writes only a goodbye, a Release and perhaps a Snapshot.
// One Snapshot says that nobody holds anything. Busy members say and read the goodbyes many round
// trips apart.
func TestACrowdClosesTogether(t *testing.T) {
	for name, apart := range map[string]time.Duration{"at once": time.Millisecond, "busy": 30 * time.Millisecond} {
		t.Run(name, func(t *testing.T) { closeTogether(t, apart) })
	}
}

func closeTogether(t *testing.T, apart time.Duration) {
	const n = 20
	w := newWorld(1)
	closers(t, w, n)
	from := len(w.logs[0])
	for i, a := range w.actors {
		w.after(time.Duration(i)*apart, func() {
			d := a.desired
			d.Closing = true
			a.want(d)
		})
	}
	w.pass(n*apart + time.Second)
	require.Zero(t, w.count(lease.Ping, from), "nobody is asked")
	require.Equal(t, n, w.count(lease.Release, from), "Releases")
	require.LessOrEqual(t, w.count(lease.Snapshot, from), n+1, "Snapshots")
	i := slices.IndexFunc(w.logs[0][from:], func(r lease.Record) bool { return r.Kind == lease.Snapshot && len(r.State.Holders) == 0 })
	require.GreaterOrEqual(t, i, 0, "a Snapshot of nobody")
	for _, a := range w.actors {
		require.True(t, a.dead, a.set.Name)
	}
}

// A closing process names successors even if the goodbyes of others never end.
func TestWaitForGoodbyesIsLimited(t *testing.T) {
	w := newWorld(1)
	closers(t, w, 12)
	a := w.actors[0]
	for i := range 1000 {
		w.after(time.Duration(i)*time.Millisecond, func() {
			r := w.actors[1].channels[0].Word(lease.Hello, w.instant())
			r.Session.Process, r.Hello = "x", &lease.Announcement{Leaving: true}
			w.append(a, Append{Record: r})
		})
	}
	from := len(w.logs[0])
	d := a.desired
	d.Closing = true
	a.want(d)
	w.pass(800 * time.Millisecond)
	require.NotZero(t, w.count(lease.Ping, from), "successors are named")
}

// A process whose possible successors say goodbye, too, releases all of its roles together.
func TestLastMemberReleasesAllRolesTogether(t *testing.T) {
	w := newWorld(1)
	closers(t, w, 12)
	a := w.actors[0]
	leave := func(a *actor) {
		d := a.desired
		d.Closing = true
		a.want(d)
	}
	for _, b := range w.actors[1:] {
		b.cut = true // its answers do not arrive
	}
	from := len(w.logs[0])
	leave(a)
	w.pass(300 * time.Millisecond)
	require.NotZero(t, w.count(lease.Ping, from), "successors are named")
	for _, b := range w.actors[1:] {
		b.cut = false
		leave(b)
	}
	w.pass(3 * time.Second)
	require.Len(t, w.sent(0, a.set.Name, lease.Release), 1, "one Release")
}

// late holds up the first Release for a while and drops the others. If talk is true, another process
// says Hello every tenth of a second.
func late(w *world, by time.Duration, talk bool) {
	held := false
	w.drop = func(r *lease.Record) bool {
		if r.Kind != lease.Release {
			return false
		}
		if !held {
			held = true
			late := *r
			w.after(by, func() {
				o := int64(len(w.logs[0]))
				w.logs[0] = append(w.logs[0], late)
				for _, to := range w.actors {
					to.read(0, o)
				}
			})
		}
		return true
	}
	if !talk {
		return
	}
	b := w.actors[1]
	for i := range 100 {
		w.after(time.Duration(i)*100*time.Millisecond, func() {
			r := b.channels[0].Word(lease.Hello, w.instant())
			r.Hello = b.announcement(nil)
			w.append(b, Append{Record: r})
		})
	}
}

// A process whose Release comes back late waits for it while it still reads records. So it finds
// the log vacant and writes a Snapshot.
func TestALateReaderLeavesASnapshot(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, nil)
	w.start("b", 1, func(s *Settings) { s.Observer = true })
	w.pass(6 * time.Second)
	require.NotEmpty(t, a.leads(1))
	late(w, 3*time.Second, true)
	from := len(w.logs[0])
	d := a.desired
	d.Closing = true
	a.want(d)
	w.pass(10 * time.Second)
	require.True(t, a.dead)
	i := slices.IndexFunc(w.logs[0][from:], func(r lease.Record) bool { return r.Kind == lease.Snapshot && len(r.State.Holders) == 0 })
	require.GreaterOrEqual(t, i, 0, "a Snapshot of nobody")
}

// A closing process that reads nothing waits only CloseTail for its Release.
func TestProcessThatReadsNothingClosesSoon(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, nil)
	w.start("b", 1, func(s *Settings) { s.Observer = true })
	w.pass(6 * time.Second)
	require.NotEmpty(t, a.leads(1))
	late(w, 5*time.Second, false)
	d := a.desired
	d.Closing = true
	a.want(d)
	w.pass(3*time.Second + 100*time.Millisecond)
	require.True(t, a.dead, "it has finished")
}

// If many processes close, and each has read the goodbyes of all others, few answer at once.
func TestFewClosingProcessesAnswer(t *testing.T) {
	const n = 100
	now := clock.Instant{Mono: clock.Mono(time.Hour)}
	soon := 0
	for i := range n {
		node := New(&Settings{Process: fmt.Sprint("p", i), T: 5 * time.Second}, nil)
		node.desired.Closing = true
		for k := range n {
			if k != i {
				node.members.Leave(fmt.Sprint("p", k), now)
			}
		}
		if node.members.Turn(node.set.Process, 7, true, node.set.T, node.trip.Takes(), now) < node.set.T/20 {
			soon++
		}
	}
	require.Equal(t, 1, soon, "answer at once")
}

// A newcomer that finds no Snapshot asks once for reading to begin farther back, unless somebody answers its Hello.
func TestANewcomerLooksBackIfNobodyAnswers(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, nil)
	w.pass(20 * time.Second)
	w.head = int64(len(w.logs[0])) - 2 // what comes before is out of reach
	b := w.start("b", 1, nil)
	w.pass(10 * time.Second)
	require.Zero(t, b.backs, "a answers")
	a.dead, b.dead = true, true
	w.head = int64(len(w.logs[0]))
	c := w.start("c", 1, nil)
	w.pass(10 * time.Second)
	require.Equal(t, 1, c.backs, "asks once")
}
