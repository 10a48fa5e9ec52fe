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

// visible is what Holder, Standings, Members and Busy answer, without the times at which processes were last heard.
func (a *actor) visible(now clock.Instant) string {
	var s strings.Builder
	for role := range a.desired.Roles {
		p, local := a.shards.local(role)
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

// announced asserts after each step that a Node's answers are the same as when it last announced a
// change. Other processes' silence and the end of a wait are noticed with the next Tick.
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

// Whatever happens, every change is announced to those who wait for changes.
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
						s.T, s.HeartbeatInterval = 2*time.Second, 400*time.Millisecond
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

// Beats and Hellos of known members announce no change: otherwise all who wait would be woken for each of them.
func TestBeatsAndHellosAnnounceNoChange(t *testing.T) {
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
