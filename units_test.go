package neli

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/term"
	"github.com/stretchr/testify/require"
)

// roleArbiter is an arbiter whose units are roles. The test decides what it holds.
type roleArbiter struct {
	partitions int
	tab        *term.Table

	mu       sync.Mutex
	slow     bool          // Set has no effect yet
	held     map[int]int64 // by role: token
	desired  elector.Desired
	finished map[int64][][]int // calls of Drained, by id
}

func (a *roleArbiter) Run(ctx context.Context) error { <-ctx.Done(); return nil }

func (a *roleArbiter) Collect() []term.Change {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tab.Collect(clock.Glance())
}

func (a *roleArbiter) Peek() []term.Change {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tab.Peek(clock.Glance())
}

func (a *roleArbiter) Set(d elector.Desired) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.slow {
		return
	}
	a.desired = d
	now := clock.Glance()
	for role := range a.held {
		if !d.Contend || d.Closing || role >= d.Roles {
			a.tab.Revoke([]int{role}, d.Reason(role, now), now.Add(10*time.Second))
		}
	}
	a.tab.Ring()
}

func (a *roleArbiter) Drained(units []int, id int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	units = slices.Sorted(slices.Values(units))
	a.finished[id] = append(a.finished[id], units)
	a.tab.Done(units)
	a.tab.End(units, term.Roles, true)
	for _, role := range units {
		delete(a.held, role)
	}
}

// claim begins a term of roles of one partition.
func (a *roleArbiter) claim(token int64, roles ...int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tab.Renew(partitionOf(roles[0], a.partitions), clock.Glance())
	a.tab.Start(roles, token, token)
	for _, role := range roles {
		a.held[role] = token
	}
}

// lose ends terms without warning.
func (a *roleArbiter) lose(roles ...int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tab.End(roles, term.Superseded, false)
	for _, role := range roles {
		delete(a.held, role)
	}
}

// span is a run of roles of one partition.
func (a *roleArbiter) span(partition, below int) []int {
	return slices.Collect(rolesOn(partition, a.partitions, below))
}

// onRoles makes a Neli on a roleArbiter. Its leases do not end by themselves.
func onRoles(t testing.TB, partitions, roles int, barrier ...Barrier) (*Neli, *roleArbiter) {
	set, err := Config{LeaderGroupID: "g", Nomination: NominationOpen, Roles: roles, HeartbeatTimeout: time.Minute}.resolve()
	require.NoError(t, err)
	n := newNeli(set, clock.Glance, barrier...)
	a := &roleArbiter{partitions: partitions, held: map[int]int64{}, finished: map[int64][][]int{}}
	a.tab = term.New(set.threshold().young, clock.Glance)
	a.tab.Open(partitions, partitions)
	n.core = core{arbiter: a, terms: a.tab}
	n.start()
	t.Cleanup(func() {
		n.stop()
		<-n.done
	})
	return n, a
}

// recorder is a barrier that keeps the events that it is given.
type recorder struct {
	mu     sync.Mutex
	events []Event
}

func (r *recorder) barrier(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) take() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	es := r.events
	r.events = nil
	return es
}

// pulse delivers all pending events.
func pulse(t testing.TB, n *Neli) bool {
	ok, err := n.Pulse(0)
	require.NoError(t, err)
	return ok
}

func led(n *Neli) []int { return slices.Collect(n.Led()) }

// Where each role has a term of its own, an event groups roles with the same partition and token.
// Several terms of one partition come in one event.
func TestTermsOfRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told recorder
		n, a := onRoles(t, 3, 12, told.barrier)
		require.False(t, pulse(t, n))
		a.claim(30, 4)
		a.claim(20, 7, 1)
		a.claim(10, 6, 0, 3)
		require.False(t, n.IsLeader(), "nobody was told")
		require.True(t, pulse(t, n))
		require.Equal(t, []Event{LeaderAcquired{Change{Reason: elected, Terms: []Term{
			{Partition: 0, Roles: []int{0, 3, 6}, Token: 10},
			{Partition: 1, Roles: []int{1, 7}, Token: 20},
			{Partition: 1, Roles: []int{4}, Token: 30},
		}}}}, told.take())
		require.Equal(t, []int{0, 1, 3, 4, 6, 7}, led(n))
		token, ok := n.Token(4)
		require.True(t, ok)
		require.Equal(t, int64(30), token)

		a.lose(3, 4)
		require.Equal(t, []int{0, 1, 6, 7}, led(n))
		require.True(t, pulse(t, n))
		require.Equal(t, []Event{LeaderFenced{Change{Reason: ReasonSuperseded, Terms: []Term{
			{Partition: 0, Roles: []int{3}, Token: 10}, {Partition: 1, Roles: []int{4}, Token: 30}}}}}, told.take())

		time.Sleep(time.Minute)
		require.False(t, n.IsLeader())
		require.Empty(t, led(n))
		require.False(t, pulse(t, n))
		require.Equal(t, ReasonLapsed, told.take()[0].(LeaderFenced).Reason)
	})
}

// SetRoles gives up the roles beyond R and no others. New roles come with terms of their own.
func TestSetRolesByRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told recorder
		n, a := onRoles(t, 2, 6, told.barrier)
		pulse(t, n)
		a.claim(10, 0, 2, 4)
		a.claim(20, 1, 3)
		a.claim(21, 5)
		require.True(t, pulse(t, n))
		told.take()
		require.NoError(t, n.SetRoles(3))
		require.Equal(t, []int{0, 1, 2}, led(n), "at once")
		require.True(t, n.IsLeader())
		require.True(t, pulse(t, n))
		es := told.take()
		require.Len(t, es, 1)
		r := es[0].(LeaderRevoked)
		require.Equal(t, ReasonRolesChanged, r.Reason)
		require.Equal(t, []Term{{0, []int{4}, 10}, {1, []int{3}, 20}, {1, []int{5}, 21}}, r.Terms)
		require.Equal(t, []int{0, 1}, r.Partitions())
		require.Equal(t, map[int64][][]int{10: {{4}}, 20: {{3}}, 21: {{5}}}, a.finished)

		require.NoError(t, n.SetRoles(8))
		require.True(t, pulse(t, n))
		require.Equal(t, []int{0, 1, 2}, led(n))
		a.claim(40, 4, 6)
		require.True(t, pulse(t, n))
		require.Equal(t, []Event{LeaderAcquired{Change{[]Term{{0, []int{4, 6}, 40}}, elected}}}, told.take())
		require.NoError(t, n.SetRoles(1))
		require.Equal(t, []int{0}, led(n))
		a.lose(0)
		require.False(t, n.IsLeader(), "what is left is beyond R")
	})
}

// leads is a Lead on a goroutine. Its functions run until their contexts end.
type leads struct {
	mu     sync.Mutex
	runs   map[int]Leadership
	causes map[int]error
	result chan error
}

func lead10k(ctx context.Context, n *Neli) *leads {
	l := &leads{runs: map[int]Leadership{}, causes: map[int]error{}, result: make(chan error, 1)}
	go func() {
		l.result <- n.Lead(ctx, func(ctx context.Context, of Leadership) error {
			l.mu.Lock()
			l.runs[of.Role] = of
			delete(l.causes, of.Role)
			l.mu.Unlock()
			<-ctx.Done()
			l.mu.Lock()
			defer l.mu.Unlock()
			l.causes[of.Role] = context.Cause(ctx)
			return ctx.Err()
		})
	}()
	return l
}

// Each of ten thousand roles has a function, and a context that ends independently of the others.
func TestLeadOfManyRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const roles, partitions = 10_000, 10
		n, a := onRoles(t, partitions, roles)
		ctx, cancel := context.WithCancel(t.Context())
		l := lead10k(ctx, n)
		synctest.Wait()
		for p := range partitions {
			a.claim(int64(100+p), a.span(p, roles)...)
		}
		synctest.Wait()
		require.Len(t, l.runs, roles)
		require.Equal(t, int64(107), l.runs[4237].Token)
		require.True(t, l.runs[4237].Valid())

		a.lose(17, 23)
		synctest.Wait()
		require.Equal(t, map[int]error{17: ErrFenced, 23: ErrFenced}, l.causes)
		require.False(t, l.runs[17].Valid())
		a.claim(500, 17)
		synctest.Wait()
		require.Equal(t, int64(500), l.runs[17].Token)
		require.Equal(t, map[int]error{23: ErrFenced}, l.causes)

		require.NoError(t, n.SetRoles(9_990))
		synctest.Wait()
		require.Len(t, l.causes, 11)
		require.Equal(t, ErrRevoked, l.causes[9_995])
		require.Equal(t, [][]int{{9_995}}, a.finished[105])
		clear(a.finished)

		cancel()
		require.NoError(t, <-l.result)
		require.Len(t, l.causes, roles, "all have returned")
		var given []int
		for _, calls := range a.finished {
			for _, units := range calls {
				given = append(given, units...)
			}
		}
		require.Len(t, given, 9_990-1)
	})
}

// If roles are led already when Lead begins, it starts functions for them.
func TestLeadTakesOverFromPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a := onRoles(t, 2, 4)
		pulse(t, n)
		a.claim(10, 0, 2)
		require.True(t, pulse(t, n))
		ctx, cancel := context.WithCancel(t.Context())
		l := lead10k(ctx, n)
		synctest.Wait()
		require.Len(t, l.runs, 2)
		require.Equal(t, int64(10), l.runs[2].Token)
		a.lose(2)
		synctest.Wait()
		require.Equal(t, map[int]error{2: ErrFenced}, l.causes)
		cancel()
		require.NoError(t, <-l.result)
		require.Equal(t, map[int64][][]int{10: {{0}}}, a.finished)
	})
}

// delay makes Set have no effect, or lets it have an effect again.
func (a *roleArbiter) delay(slow bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slow = slow
}

// Roles that were removed just before Lead began and come back in the same terms get functions.
func TestLeadTakesOverRolesThatComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a := onRoles(t, 1, 4)
		pulse(t, n)
		a.claim(7, 0, 1, 2, 3)
		require.True(t, pulse(t, n))
		a.delay(true) // Set has not yet ended the removed roles when they come back
		require.NoError(t, n.SetRoles(2))
		ctx, cancel := context.WithCancel(t.Context())
		l := lead10k(ctx, n)
		synctest.Wait()
		require.Len(t, l.runs, 2)
		require.NoError(t, n.SetRoles(4))
		a.tab.Ring()
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 3}, led(n))
		require.Len(t, l.runs, 4)
		a.delay(false)
		cancel()
		require.NoError(t, <-l.result)
	})
}

// BenchmarkLeadEvent measures what the loss and the return of one role cost a Lead with many roles.
func BenchmarkLeadEvent(b *testing.B) {
	for _, roles := range []int{10, 10_000} {
		b.Run(fmt.Sprint(roles, " roles"), func(b *testing.B) {
			n, a := onRoles(b, 10, roles)
			a.tab.Renew(0, clock.Glance())
			ctx, cancel := context.WithCancel(b.Context())
			started := make(chan int64, roles)
			result := make(chan error, 1)
			go func() {
				result <- n.Lead(ctx, func(ctx context.Context, l Leadership) error {
					started <- l.Token
					<-ctx.Done()
					return ctx.Err()
				})
			}()
			for p := range 10 {
				a.claim(1, a.span(p, roles)...)
			}
			for range roles {
				<-started
			}
			token := int64(1)
			for b.Loop() {
				token++
				a.lose(0)
				a.claim(token, 0)
				for <-started != token {
				}
			}
			cancel()
			require.NoError(b, <-result)
		})
	}
}

// The barrier may take long for one event. Meanwhile the contexts of lost roles end, so that their
// functions do not work on beside a successor.
func TestContextsEndWhileTheBarrierIsAtWork(t *testing.T) {
	for name, c := range map[string]struct {
		loss func(*roleArbiter)
		want error
	}{
		"superseded": {func(a *roleArbiter) { a.lose(1) }, ErrFenced},
		"revoked": {func(a *roleArbiter) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.tab.Revoke([]int{1}, term.Unassigned, clock.Glance().Add(10*time.Second))
		}, ErrRevoked},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told recorder
				n, a := onRoles(t, 2, 2, func(e Event) {
					told.barrier(e)
					if f, ok := e.(LeaderFenced); ok && slices.Equal(f.Roles(), []int{0}) {
						time.Sleep(7 * time.Second)
					}
				})
				ctx, cancel := context.WithCancel(t.Context())
				l := lead10k(ctx, n)
				synctest.Wait()
				a.claim(10, 0)
				a.claim(11, 1)
				synctest.Wait()
				a.lose(0)
				time.Sleep(time.Second)
				synctest.Wait()
				require.Equal(t, map[int]error{0: ErrFenced}, l.causes)
				c.loss(a)
				synctest.Wait()
				require.Equal(t, c.want, l.causes[1])
				require.Len(t, told.take(), 2, "the barrier is at work, and has not been told")
				time.Sleep(7 * time.Second)
				synctest.Wait()
				require.Equal(t, []int{1}, told.take()[0].(interface{ Roles() []int }).Roles())
				cancel()
				require.NoError(t, <-l.result)
			})
		})
	}
}

// The arbiter and IsLeaderOf always use the same R.
func TestConcurrentSetRolesLeaveOneR(t *testing.T) {
	n, a := onRoles(t, 1, 1)
	for range 2000 {
		var calls sync.WaitGroup
		for r := 1; r <= 3; r++ {
			calls.Go(func() { _ = n.SetRoles(r) })
		}
		calls.Wait()
		require.Equal(t, a.desired.Roles, int(n.roles.Load()))
	}
}

// The deadline is right by the monotonic clock, even if the wall clock is set.
func TestDeadlineIsMonotonic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told recorder
		set := time.Duration(0)
		n, a := onRoles(t, 1, 1, told.barrier)
		n.now = func() clock.Instant {
			at := clock.Glance()
			at.Wall = at.Wall.Add(set)
			return at
		}
		pulse(t, n)
		a.claim(10, 0)
		pulse(t, n)
		told.take()
		a.mu.Lock()
		a.tab.Revoke([]int{0}, term.Unassigned, n.now().Add(10*time.Second))
		a.mu.Unlock()
		time.Sleep(2 * time.Second)
		set = -8 * time.Second
		pulse(t, n)
		r := told.take()[0].(LeaderRevoked)
		require.Equal(t, 8*time.Second, time.Until(r.Deadline))
	})
	// In a bubble both clocks show the same.
	n, _ := onRoles(t, 1, 1)
	r := n.event([]term.Change{{Kind: term.Revoked, Units: []int{0}, Deadline: clock.Glance()}}).(LeaderRevoked)
	require.NotEqual(t, r.Deadline.Round(0), r.Deadline, "it has a monotonic reading")
}

func TestRemaining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a := onRoles(t, 2, 2)
		ctx, cancel := context.WithCancel(t.Context())
		l := lead10k(ctx, n)
		synctest.Wait()
		a.claim(10, 1)
		synctest.Wait()
		of := l.runs[1]
		const hold = 54 * time.Second // for 0.9 T by its own clock
		require.Equal(t, hold, of.Remaining())
		time.Sleep(44 * time.Second)
		require.Equal(t, 10*time.Second, of.Remaining())
		a.mu.Lock()
		a.tab.Renew(1, clock.Glance())
		a.mu.Unlock()
		require.Equal(t, hold, of.Remaining())
		time.Sleep(hold - 1)
		require.True(t, of.Valid())
		require.Equal(t, time.Nanosecond, of.Remaining())
		time.Sleep(time.Nanosecond)
		require.False(t, of.Valid())
		require.Zero(t, of.Remaining())
		a.lose(1)
		a.claim(11, 1)
		synctest.Wait()
		require.Zero(t, of.Remaining(), "another term")
		require.Equal(t, hold, l.runs[1].Remaining())
		require.Zero(t, Leadership{}.Remaining())
		require.False(t, Leadership{}.Valid())
		cancel()
		require.NoError(t, <-l.result)
	})
}
