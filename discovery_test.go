package neli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/inside"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

const beat = defaultT / 5 // time between beats

func observer(cfg *neli.Config) { cfg.Observer = true }

// watched collects what a Watch yields until the test stops it.
type watched struct {
	mu   sync.Mutex
	stop context.CancelFunc
	done chan struct{}
	seen []neli.Standing
}

func watch(n *neli.Neli) *watched {
	ctx, stop := context.WithCancel(context.Background())
	w := &watched{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for s := range n.Watch(ctx) {
			w.mu.Lock()
			w.seen = append(w.seen, s)
			w.mu.Unlock()
		}
	}()
	return w
}

// words returns the changes of a partition so far, each as the holder's name or the status.
func (w *watched) words(partition int) (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.seen {
		switch {
		case s.Partition != partition:
		case s.Status == neli.StatusHeld:
			out = append(out, s.Holder.Name)
		default:
			out = append(out, s.Status.String())
		}
	}
	return out
}

func (w *watched) end() {
	w.stop()
	<-w.done
}

func names(ms []neli.Member) (out []string) {
	for _, m := range ms {
		out = append(out, m.Name)
	}
	return out
}

// All processes report the same leader, including the leader itself and an observer, and report a hand-over at once.
func TestEverybodyKnowsTheHolder(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.NominationAssigned, neli.NominationOpen} {
		t.Run(nomination.String(), func(t *testing.T) {
			simulate(t, nelitest.Options{}, func(c *cluster) {
				for _, name := range []string{"a", "b", "d"} {
					c.Work(name, func(cfg *neli.Config) {
						cfg.Nomination, cfg.Advertise, cfg.Zone = nomination, "http://"+name, "z-"+name
					})
				}
				o := c.Join("o", observer)
				_, ok := o.Holder(0)
				require.False(c, ok, "nobody leads yet")
				c.Leader(0, 2*silence)
				c.Pass(time.Minute)
				for range 2 {
					l := c.Leader(0, 2*silence)
					token, _ := l.Token(0)
					c.Pass(beat + 100*time.Millisecond) // long enough for a newcomer to hear a beat
					for _, name := range c.Names {
						h, ok := c.Members[name].Holder(0)
						require.True(c, ok, name)
						require.Equal(c, l.As, h.Name, name)
						require.Equal(c, l.ID(), h.Member, name)
						require.Equal(c, []string{"http://" + l.As, "z-" + l.As}, []string{h.Advertise, h.Zone}, name)
						require.Equal(c, token, h.Token, name)
						require.LessOrEqual(c, h.Age, beat+10*time.Millisecond, name)
						require.LessOrEqual(c, h.Age, time.Since(h.Since), name)
						require.Less(c, time.Since(h.Since), 2*time.Minute, name)
					}
					require.NoError(c, l.Close())
					c.Eventually(time.Second, "the next leader is known", func() bool {
						h, ok := o.Holder(0)
						return ok && h.Token > token && h.Name != l.As
					})
					c.Join(l.As, observer) // in its place
				}
			})
		})
	}
}

// A holder that falls silent is reported as such once W(T) has passed since its last record, and not before.
func TestHolderThatFallsSilent(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a, o := c.Work("a", open), c.Join("o", observer)
		w := watch(o.Neli)
		defer w.end()
		c.Leader(0, 2*silence)
		c.Pass(10300 * time.Millisecond)
		c.Crash(a)
		h, ok := o.Holder(0)
		require.True(c, ok)
		seen := time.Now().Add(-h.Age)
		for {
			c.Pass(time.Millisecond)
			now, ok := o.Holder(0)
			if !ok {
				break
			}
			require.Equal(c, time.Since(seen), now.Age)
			require.Equal(c, h.Since, now.Since)
			require.Less(c, now.Age, silence+10*time.Microsecond, "silence is rounded")
		}
		require.InDelta(c, silence, time.Since(seen), float64(2*time.Millisecond))
		c.Pass(time.Millisecond)
		require.Equal(c, []string{"a", "vacant"}, w.words(0)[len(w.words(0))-2:], "the timer tells watchers")
		told := len(w.words(0))
		c.Pass(time.Minute)
		require.Len(c, w.words(0), told)
	})
}

// A process that starts after the holder has died does not take old records for news.
func TestOldRecordsDoNotShowAHolder(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.Work("a", open)
		c.Leader(0, 2*silence)
		c.Pass(time.Minute)
		c.Crash(a)
		c.Pass(time.Hour)
		o := c.Join("o", observer)
		w := watch(o.Neli)
		defer w.end()
		for range 2 * silence / time.Millisecond {
			c.Pass(time.Millisecond)
			_, ok := o.Holder(0)
			require.False(c, ok)
			require.Empty(c, o.Members())
		}
		require.Equal(c, []string{"vacant"}, w.words(0))
	})
}

// An observer needs only the right to read. It writes nothing, creates nothing and never leads.
func TestObserverOnlyReads(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		c.Broker.Refuse("o", nelitest.LinkAppends|nelitest.LinkGroup, kafka.ErrAuthorization)
		o := c.Join("o", func(cfg *neli.Config) { cfg.Observer, cfg.Nomination = true, neli.NominationOpen })
		c.Pass(10 * time.Second)
		require.Empty(c, o.Members(), "the topic is missing, and is not the observer's to create")
		c.Work("a", nil)
		c.Work("b", nil)
		l := c.Leader(0, 3*silence)
		for range 2 {
			ok, err := o.Pulse(time.Hour)
			require.ErrorIs(c, err, neli.ErrObserver)
			require.False(c, ok)
			_, err = o.PulseCtx(context.Background())
			require.ErrorIs(c, err, neli.ErrObserver)
			_, err = o.Background(func() { c.Error("runs") })
			require.ErrorIs(c, err, neli.ErrObserver)
			err = o.Lead(context.Background(), func(context.Context, neli.Leadership) error { c.Error("runs"); return nil })
			require.ErrorIs(c, err, neli.ErrObserver)
			c.Crash(l)
			for range 10 {
				c.Pass(3 * time.Second)
				require.False(c, o.IsLeader())
				require.False(c, o.IsLeaderOf(0))
				_, ok = o.Token(0)
				require.False(c, ok)
				require.Empty(c, slices.Collect(o.Led()))
			}
			h, known := o.Holder(0)
			require.Equal(c, len(c.Names) > 1, known)
			l = c.Members[h.Name]
			if l == nil {
				break
			}
			require.True(c, l.IsLeader())
		}
		require.Equal(c, neli.StateLive, o.State())
		began := time.Now()
		require.NoError(c, o.Close())
		require.Less(c, time.Since(began), 500*time.Millisecond)
		_, err := o.Pulse(0)
		require.ErrorIs(c, err, neli.ErrObserver)
		_, ok := o.Holder(0)
		require.False(c, ok)
		require.Nil(c, o.Members())
		require.Empty(c, o.Kinds())
		for _, r := range c.Broker.Records("app.neli", 0) {
			require.NotContains(c, string(r.Value), `"name":"o"`)
		}
	})
}

// A Watch first yields all partitions with their roles.
func TestWatchFirstYieldsThePresentState(t *testing.T) {
	simulateWith(t, nelitest.Options{}, roles(7), func(c *cluster) {
		three := func(cfg *neli.Config) { cfg.Partitions = 3 }
		c.Work("a", three)
		for role := range 7 {
			c.Leader(role, 2*silence)
		}
		c.Pass(10 * time.Second)
		o := c.Join("o", func(cfg *neli.Config) { cfg.Observer = true })
		c.Pass(10 * time.Second)
		var led []int
		for s := range o.Watch(context.Background()) {
			require.Equal(c, neli.StatusHeld, s.Status)
			require.Equal(c, "a", s.Holder.Name)
			for role := range s.Roles() {
				require.Equal(c, s.Partition, role%3)
				led = append(led, role)
				h, ok := o.Holder(role)
				require.True(c, ok)
				require.Equal(c, s.Holder.Token, h.Token)
			}
			if len(led) == 7 {
				break // leaves nothing behind, or the bubble would fail
			}
		}
		slices.Sort(led)
		require.Equal(c, []int{0, 1, 2, 3, 4, 5, 6}, led)
		for _, role := range []int{-1, 7, 1 << 40} {
			_, ok := o.Holder(role)
			require.False(c, ok)
		}
	})
}

// A Watch yields every change that lasts: a release, a new term, a holder's silence.
func TestWatchYieldsEveryLastingChange(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.NominationAssigned, neli.NominationOpen} {
		t.Run(nomination.String(), func(t *testing.T) {
			simulate(t, nelitest.Options{}, func(c *cluster) {
				with := func(cfg *neli.Config) { cfg.Nomination = nomination }
				a, o := c.Work("a", with), c.Join("o", observer)
				c.Leader(0, 2*silence)
				w := watch(o.Neli)
				c.Pass(time.Minute)
				require.Equal(c, []string{"a"}, w.words(0), "beats are no changes")
				require.NoError(c, a.Close())
				c.Pass(time.Second)
				require.Equal(c, []string{"a", "vacant"}, w.words(0))
				b := c.Work("b", with)
				c.Leader(0, 20*time.Second)
				c.Pass(10 * time.Second)
				c.Crash(b)
				c.Pass(time.Minute)
				require.Equal(c, []string{"a", "vacant", "b", "vacant"}, w.words(0))
				w.end()
			})
		})
	}
}

// A slow consumer delays nobody, and gets the present state when it asks.
func TestSlowConsumerOfAWatchDelaysNobody(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		o := c.Join("o", observer)
		a := c.Work("a", open)
		c.Leader(0, 2*silence)
		c.Pass(10 * time.Second)
		var seen []string
		for s := range o.Watch(context.Background()) {
			seen = append(seen, s.Holder.Name)
			if len(seen) == 2 {
				break
			}
			for _, name := range []string{"b", "d", "e"} { // the role moves three times meanwhile
				next := c.Work(name, open)
				c.Pass(time.Second)
				require.NoError(c, a.Close())
				c.Eventually(silence, "the next one leads", next.IsLeader)
				a = next
			}
			c.Pass(10 * time.Second)
		}
		require.Equal(c, []string{"a", "e"}, seen)
	})
}

// A Watch ends with its context, with Close, and with an error that ends its Neli.
func TestWatchEnds(t *testing.T) {
	for _, end := range []struct {
		name string
		how  func(c *cluster, o *member, stop func())
	}{
		{"context", func(_ *cluster, _ *member, stop func()) { stop() }},
		{"close", func(c *cluster, o *member, _ func()) { require.NoError(c, o.Close()) }},
		{"failure", func(c *cluster, o *member, _ func()) {
			require.NoError(c, c.Broker.DeleteTopic("app.neli"))
			require.NoError(c, c.Broker.CreateTopic("app.neli", 1))
			require.ErrorIs(c, o.Await(), neli.ErrTopicChanged)
			_, ok := o.Holder(0)
			require.False(c, ok, "tokens of a log that is gone say nothing")
			require.Nil(c, o.Members())
		}},
	} {
		for _, before := range []string{"a topic", "anything"} {
			if end.name == "failure" && before == "anything" {
				continue // nothing can fail here
			}
			t.Run(end.name+" before "+before, func(t *testing.T) {
				simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
					if before == "a topic" {
						c.Work("a", open)
						c.Leader(0, 2*silence)
					}
					o := c.Join("o", observer)
					c.Pass(time.Second)
					w := watch(o.Neli)
					synctest.Wait()
					end.how(c, o, w.stop)
					<-w.done
					if end.name != "context" {
						for range o.Watch(context.Background()) {
							require.Fail(c, "yields when all is over")
						}
					}
				})
			})
		}
	}
}

// A process that is cut off reports the holder with a growing age, and then no holder.
func TestCutOffProcessStopsReportingTheHolder(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		c.Work("a", open)
		o := c.Join("o", observer)
		c.Leader(0, 2*silence)
		c.Pass(10 * time.Second)
		h, ok := o.Holder(0)
		require.True(c, ok)
		c.Broker.CutOff("o", nelitest.LinkAll)
		c.Pass(3 * time.Second)
		late, ok := o.Holder(0)
		require.True(c, ok)
		require.Equal(c, h.Age+3*time.Second, late.Age)
		c.Pass(3 * time.Second)
		_, ok = o.Holder(0)
		require.False(c, ok)
		c.Broker.Restore("o", nelitest.LinkAll)
		c.Eventually(beat+time.Second, "the holder is known again", func() bool { _, ok := o.Holder(0); return ok })
		again, _ := o.Holder(0)
		require.Equal(c, h.Token, again.Token)
		require.Equal(c, h.Since, again.Since, "it has followed the whole term")
	})
}

// Members are the processes that announce themselves, with either nomination. They are known after
// one announcement, removed at once when they close, and removed after three missing announcements
// when they crash.
func TestMembers(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.NominationAssigned, neli.NominationOpen} {
		t.Run(nomination.String(), func(t *testing.T) {
			simulate(t, nelitest.Options{}, func(c *cluster) {
				with := func(cfg *neli.Config) { cfg.Nomination = nomination }
				b, a := c.Work("b", with), c.Work("a", with)
				c.Join("e", with) // e does not contend
				o := c.Join("o", observer)
				c.Pass(30 * time.Second)
				for _, m := range []*member{a, b, o} {
					ms := m.Members()
					require.Equal(c, []string{"a", "b", "e"}, names(ms), m.As)
					for _, x := range ms {
						require.Equal(c, x.Name == m.As, x.Self)
						require.Less(c, x.Age, 5*time.Second+10*time.Millisecond)
						require.Equal(c, c.Members[x.Name].ID(), x.ID)
					}
					require.False(c, ms[2].Nominated)
					if nomination == neli.NominationOpen {
						require.True(c, ms[0].Nominated && ms[1].Nominated)
					} else {
						require.NotEqual(c, ms[0].Nominated, ms[1].Nominated, "there is one partition")
					}
				}
				require.NoError(c, b.Close())
				c.Pass(50 * time.Millisecond)
				require.Equal(c, []string{"a", "e"}, names(o.Members()), "gone at once")
				c.Work("b", with)
				c.Pass(50 * time.Millisecond)
				require.Equal(c, []string{"a", "b", "e"}, names(o.Members()), "known at once")

				c.Crash(a)
				crashed := time.Now()
				c.Pass(9900 * time.Millisecond)
				require.Contains(c, names(o.Members()), "a", "two announcements are not enough")
				late := c.Join("p", observer)
				c.Eventually(6*time.Second, "it is taken for gone", func() bool { return !slices.Contains(names(o.Members()), "a") })
				require.Greater(c, time.Since(crashed), 10*time.Second)
				c.Pass(5 * time.Second)
				require.Equal(c, []string{"b", "e"}, names(late.Members()), "who died before is not known to who comes after")
			})
		})
	}
}

// Records are empty in non-exclusive mode, so nothing is known of other processes.
func TestNothingIsKnownInNonExclusiveMode(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		a := c.Work("a", func(cfg *neli.Config) { cfg.Mode = neli.NonExclusive })
		c.Leader(0, time.Minute)
		_, ok := a.Holder(0)
		require.False(c, ok)
		require.Nil(c, a.Members())
		require.Nil(c, a.Standings())
		for range a.Watch(context.Background()) {
			c.Error("yields")
		}
	})
}

// say puts Standings into words.
func say(ss []neli.Standing) (out []string) {
	for _, s := range ss {
		who := s.Status.String()
		if s.Status == neli.StatusHeld {
			who = s.Holder.Name
		}
		out = append(out, fmt.Sprintf("%d %v %s", s.Partition, slices.Collect(s.Roles()), who))
	}
	return out
}

// Standings cover every role below R once, including unknown ones. Held roles are grouped by holder
// and token, and vacant ones together, whatever made them vacant.
func TestStandings(t *testing.T) {
	simulateWith(t, nelitest.Options{}, roles(6), func(c *cluster) {
		c.Aged(2)
		o := c.Join("o", func(cfg *neli.Config) { cfg.Observer, cfg.Partitions = true, 2 })
		require.Nil(c, o.Standings(), "no partitions yet")
		require.Zero(c, inside.Partitions(o.Neli))
		two := func(cfg *neli.Config) { open(cfg); cfg.Partitions, cfg.DisableRebalance = 2, true }
		a := c.Work("a", two)
		c.Pass(time.Second)
		require.Equal(c, []string{"0 [0 2 4] unknown", "1 [1 3 5] unknown"}, say(o.Standings()))
		require.Equal(c, 2, inside.Partitions(o.Neli))
		c.Leader(5, 2*silence)
		c.Pass(time.Second)
		require.Equal(c, []string{"0 [0 2 4] a", "1 [1 3 5] a"}, say(o.Standings()))
		require.Equal(c, say(o.Standings()), say(a.Standings()))
		first := o.Standings()[0].Holder
		holder, ok := o.Holder(4)
		require.True(c, ok)
		require.Equal(c, holder, first)

		b := c.Work("b", two)
		c.Pass(time.Second)
		require.NoError(c, a.Transfer(context.Background(), 2, "b"))
		c.Pass(100 * time.Millisecond)
		require.Equal(c, []string{"0 [0 4] a", "0 [2] b", "1 [1 3 5] a"}, say(o.Standings()))
		c.Crash(a)
		c.Crash(b)
		c.Pass(20 * time.Second)
		require.Equal(c, []string{"0 [0 2 4] vacant", "1 [1 3 5] vacant"}, say(o.Standings()), "by the silence of two holders")
		require.NoError(c, o.SetRoles(2))
		require.Equal(c, []string{"0 [0] vacant", "1 [1] vacant"}, say(o.Standings()))
		require.NoError(c, o.Close())
		require.Nil(c, o.Standings())
	})
}

// In JSON a status is a word, a duration is in seconds and roles are ranges. The result can be read back.
func TestStandingsAsJSON(t *testing.T) {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	holder := neli.Holder{Name: "<a>", Member: "id", Token: 17, Since: at, Age: 1500 * time.Millisecond}
	text := `{"name":"\u003ca\u003e","member":"id","token":17,"since":"2026-11-22T10:00:00Z","age":1.5}`
	requireJSON(t, text, holder)
	requireJSON(t, `{"name":"","member":"","advertise":"a:1","zone":"z","token":0,"age":0}`, neli.Holder{Advertise: "a:1", Zone: "z"})
	requireJSON(t, `{"name":"","id":"","self":false,"nominated":false,"priority":0,"advertise":"a:1","zone":"z","age":0}`, neli.Member{Advertise: "a:1", Zone: "z"})
	requireJSON(t, `{"name":"b","id":"x","self":true,"nominated":true,"priority":-3,"age":0.25}`,
		neli.Member{Name: "b", ID: "x", Self: true, Nominated: true, Priority: -3, Age: 250 * time.Millisecond})
	requireJSON(t, `{"partition":2,"status":"vacant","roles":"","count":0}`, neli.Standing{Partition: 2, Status: neli.StatusVacant})

	var s neli.Standing
	held := `{"partition":1,"status":"held","holder":` + text + `,"roles":"0-3,5,7-8","count":7}`
	require.NoError(t, json.Unmarshal([]byte(held), &s))
	require.Equal(t, []int{0, 1, 2, 3, 5, 7, 8}, slices.Collect(s.Roles()))
	requireJSON(t, held, s)

	for _, bad := range []string{`{"status":"led"}`, `{"roles":"4-3"}`, `{"roles":"0-1000000"}`, `{"roles":"3,3"}`, `{"roles":"x"}`,
		`{"roles":"-1"}`, `{"holder":{"age":1e300}}`, `{"holder":{"age":"1s"}}`} {
		require.Error(t, json.Unmarshal([]byte(bad), &s), bad)
	}
}

func requireJSON[T any](t *testing.T, want string, of T) {
	t.Helper()
	b, err := json.Marshal(of)
	require.NoError(t, err)
	require.Equal(t, want, string(b))
	var back T
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, of, back)
}

// The texts of enumerations are those of metrics and JSON: words of lower-case letters, digits and
// underscores. A value that is none of the constants has no text.
func TestTextsOfEnumerations(t *testing.T) {
	for want, of := range map[string]interface{ MarshalText() ([]byte, error) }{
		"not_pulsed": neli.ReasonNotPulsed, "roles_changed": neli.ReasonRolesChanged,
		"log_reset": neli.ReasonLogReset, "stepped_down": neli.ReasonSteppedDown,
	} {
		b, err := of.MarshalText()
		require.NoError(t, err)
		require.Equal(t, want, string(b))
	}
	for r := neli.ReasonUnassigned; r <= neli.ReasonFatal; r++ {
		b, err := r.MarshalText()
		require.NoError(t, err)
		require.Regexp(t, `^[a-z]+(_[a-z]+)*$`, string(b))
	}
	for _, of := range []interface{ MarshalText() ([]byte, error) }{neli.ReasonFatal + 1, neli.Reason(-1)} {
		_, err := of.MarshalText()
		require.ErrorContains(t, err, "is none")
	}
}
