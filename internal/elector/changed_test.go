package elector

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// visible is what Holder, Standings, Members and Busy answer, without the times at which
// somebody was last heard.
func (a *actor) visible(now clock.Instant) string {
	var s strings.Builder
	for role := range a.desired.Roles {
		p, local := a.local(role)
		token, g := p.Standing(local, now)
		fmt.Fprintf(&s, "role %d: %d of %s\n", role, token, g.Session.Process)
	}
	var members []string
	for _, m := range a.members.All() {
		members = append(members, fmt.Sprintf("member %s %s %v %d\n", m.Process, m.Name, m.Nominated, m.Priority))
	}
	slices.Sort(members)
	fmt.Fprintf(&s, "%smay claim: %v, busy: %v", strings.Join(members, ""), a.mayClaim(now), a.Busy(now))
	return s.String()
}

// announced asserts after each step that what can be seen of a Node is what could be seen when it
// last announced a change. Other processes' silence and the end of a wait are noticed with the
// next Tick.
func (w *world) announced(t *testing.T, says string) (changes *int) {
	shown, ticking := map[*actor]string{}, false
	changes = new(int)
	w.stepped = func(a *actor, r Ready) {
		is := a.visible(w.instant())
		if _, known := shown[a]; r.Changed || !known {
			if r.Changed {
				*changes++
			}
			shown[a] = is
			return
		}
		if is == shown[a] || r.Finished {
			return
		}
		require.False(t, ticking, "%s: %s was not announced by %s at %v:\n%s\ninstead of\n%s", says, "a change", a.set.Name, w.now, is, shown[a])
		ticking = true
		a.do(a.Tick)
		ticking = false
	}
	return changes
}

// Whatever happens, whoever waits for a change is told that there is one.
func TestNoChangeGoesUnannounced(t *testing.T) {
	for name, c := range map[string]struct {
		logs   int
		change func(*Settings)
	}{
		"one log":    {1, nil},
		"two logs":   {2, nil},
		"nominated":  {2, nominated},
		"small logs": {3, func(s *Settings) { s.Majority = true }},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				w := newWorld(c.logs)
				w.mute = true
				w.announced(t, fmt.Sprintf("seed %d", seed))
				own := func(s *Settings) {
					if c.change != nil {
						c.change(s)
					}
					if rnd.IntN(3) == 0 { // the lease need not be the same for all
						s.T, s.Every = 2*time.Second, 400*time.Millisecond
					}
				}
				w.start("o", 12, func(s *Settings) { own(s); s.Observer = true })
				for i := range 40 {
					w.disturb(rnd, i, own)
					switch a := w.actors[rnd.IntN(len(w.actors))]; rnd.IntN(6) {
					case 0:
						if !a.dead && a.set.Nominated {
							a.nominate(rnd.IntN(4) == 0, rnd.Perm(c.logs)[:rnd.IntN(c.logs+1)]...)
						}
					case 1:
						if rnd.IntN(5) == 0 {
							w.put(lease.Record{Kind: newer})
						}
					case 4:
						a.misread = &lease.Record{Kind: []lease.Kind{lease.Claim, lease.Release}[rnd.IntN(2)], Name: w.actors[rnd.IntN(len(w.actors))].set.Name}
					case 2:
						d := a.desired
						d.Away = w.instant().Mono.Add(10 * time.Second)
						a.want(d)
					case 3:
						if rnd.IntN(3) == 0 {
							d := a.desired
							d.Closing = true
							a.want(d)
						}
					}
					w.pass(time.Duration(rnd.IntN(4000)) * time.Millisecond)
				}
				w.pass(time.Minute)
			}
		})
	}
}

// Beats and Hellos of members that are known announce nothing: whoever waits would be woken for
// each of them.
func TestACalmGroupAnnouncesNothing(t *testing.T) {
	for _, logs := range []int{1, 3} {
		w := newWorld(logs)
		for _, name := range []string{"a", "b", "c"} {
			w.start(name, 9, nil)
		}
		w.pass(time.Minute)
		changes := w.announced(t, "calm")
		w.pass(30 * time.Second)
		require.Zero(t, *changes)
		w.actor("a").dead = true
		w.pass(10 * time.Second)
		require.Positive(t, *changes)
	}
}

// from is a record of process b, which has read all there is of a log.
func (k *kept) from(log int, r lease.Record) lease.Record {
	r.Session, r.Name, r.T, r.Longest = lease.Session{Process: "b", N: 1}, "b", time.Second, lease.Unsaid
	r.Read, r.Seq = k.ends[log]-1, uint64(k.ends[log]+1)
	return r
}

// Whatever a record changes of what leases say of any role is counted, and a Beat of a holder
// that is not silent is not.
func TestLeasesCountWhatMayHaveChanged(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		turns := k.Turns()
		counted := func(yes bool, what string) {
			t.Helper()
			require.Equal(t, yes, k.Turns() > turns, what)
			turns = k.Turns()
		}
		k.win(t, 0)
		k.Changed()
		counted(true, "a role was won")
		for log := range k.ends {
			r, _ := k.Beat(log, k.now)
			k.read(log, r)
		}
		k.Tick(100, time.Millisecond, k.now)
		k.Changed()
		turns = k.Turns() // with several logs a term may begin with a Beat
		for log := range k.ends {
			r, _ := k.Beat(log, k.now)
			k.read(log, r)
			k.Read(log, k.ends[log], nil, lease.ErrForeign, k.now)
			k.ends[log]++
		}
		k.Tick(100, time.Millisecond, k.now)
		k.Changed()
		counted(false, "a holder is alive, and was")
		k.read(0, k.from(0, lease.Record{Kind: lease.Claim, Roles: []int32{5}}))
		counted(true, "another process has claimed a role")
		k.Begin(0, Entry{Reset: true, Offset: 50, End: 50}, k.now)
		counted(true, "a log begins anew")
	})
}

// Of small logs a role may also be called vacant or not because of what one log says of a process
// that holds nothing on most of them.
func TestSmallLogsCountWhatDelaysARole(t *testing.T) {
	everyLeases(t, func(t *testing.T, k *kept) {
		if !k.many() {
			return // there the bound for all roles tells
		}
		k.win(t, 0)
		k.read(1, k.from(1, lease.Record{Kind: lease.Claim, Roles: []int32{5}}))
		k.Changed()
		turns := k.Turns()
		k.Read(0, k.ends[0], &lease.Record{}, lease.ErrNewer, k.now)
		k.ends[0]++
		require.Greater(t, k.Turns(), turns, "a newer version may hold it there")

		k.pass(990 * time.Millisecond)
		k.pass(990 * time.Millisecond)
		k.Tick(100, time.Millisecond, k.now)
		k.Changed()
		require.LessOrEqual(t, k.FreeAt(5), k.now.Raw)
		turns = k.Turns()
		k.read(1, k.from(1, lease.Record{Kind: lease.Beat}))
		require.Greater(t, k.Turns(), turns, "its holder on that log is alive")
		turns = k.Turns()
		k.read(1, k.from(1, lease.Record{Kind: lease.Beat}))
		require.Equal(t, turns, k.Turns(), "as it was")

		k.Begin(2, Entry{Reset: true}, k.now)
		k.ends[2] = 0
		turns = k.Turns()
		k.pass(500 * time.Millisecond)
		k.read(2, k.from(2, lease.Record{Kind: lease.Hello, Hello: &lease.Announcement{}}))
		require.Equal(t, turns, k.Turns(), "a Hello is no evidence")
		k.pass(500 * time.Millisecond)
		k.read(2, k.from(2, lease.Record{Kind: lease.Beat}))
		require.Greater(t, k.Turns(), turns, "it may hold anything on a log of which nothing is known")
	})
}
