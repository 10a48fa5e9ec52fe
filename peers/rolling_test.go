package peers_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/peers"
)

// rollingT outlasts the stalls of a busy machine.
const rollingT = 3 * time.Second

// rolling is a group whose processes are members with a log each. They are restarted with other lists.
type rolling struct {
	*testing.T
	hosts map[string]peers.Host

	mu      sync.Mutex
	members map[string]*neli.Neli
	tokens  []int64
	ledAt   time.Time
	gap     time.Duration // the longest time without a leader
	ended   sync.WaitGroup
}

func newRolling(t *testing.T, ids string) *rolling {
	t.Helper()
	r := &rolling{T: t, hosts: map[string]peers.Host{}, members: map[string]*neli.Neli{}}
	for i, h := range peers.Hosts(t, len(ids)) {
		r.hosts[ids[i:i+1]] = peers.Host{ID: ids[i : i+1], Address: h.Address}
	}
	ctx, stop := context.WithCancel(context.Background())
	r.ended.Go(func() { r.look(ctx) })
	t.Cleanup(func() {
		r.stop(strings.Join(slices.Collect(maps.Keys(r.members)), ""))
		stop()
		r.ended.Wait()
	})
	return r
}

// look measures how long nobody leads.
func (r *rolling) look(ctx context.Context) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.mu.Lock()
		now := time.Now()
		if slices.ContainsFunc(slices.Collect(maps.Values(r.members)), (*neli.Neli).IsLeader) {
			r.ledAt = now
		} else if !r.ledAt.IsZero() {
			r.gap = max(r.gap, now.Sub(r.ledAt))
		}
		r.mu.Unlock()
	}
}

func (r *rolling) list(ids string) (all []peers.Host) {
	for _, id := range strings.Split(ids, "") {
		if id != "" {
			all = append(all, r.hosts[id])
		}
	}
	return all
}

// restart restarts processes one after the other, and waits after each until its log counts again.
func (r *rolling) restart(ids, hosts, next string) {
	r.Helper()
	for _, id := range strings.Split(ids, "") {
		r.stop(id)
		r.start(id, hosts, next)
		r.lead(rollingT * 5 / 4)
	}
}

func (r *rolling) start(id, hosts, next string) {
	r.Helper()
	n, err := neli.New(neli.Config{Provider: peers.Provider(peers.Config{Hosts: r.list(hosts), Next: r.list(next), Self: id}),
		LeaderGroupID: "test", Name: id, HeartbeatTimeout: rollingT, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(r, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[id] = n
	r.ended.Go(func() {
		err := n.Lead(context.Background(), func(ctx context.Context, l neli.Leadership) error {
			r.mu.Lock()
			r.tokens = append(r.tokens, l.Token)
			r.mu.Unlock()
			<-ctx.Done()
			return nil
		})
		assert.ErrorIs(r, err, neli.ErrClosed)
	})
}

func (r *rolling) stop(ids string) {
	for _, id := range strings.Split(ids, "") {
		r.mu.Lock()
		n := r.members[id]
		r.mu.Unlock()
		if n != nil {
			assert.NoError(r, n.Close())
		}
		r.mu.Lock()
		delete(r.members, id)
		r.mu.Unlock()
	}
}

// lead lets time pass.
func (r *rolling) lead(d time.Duration) { <-time.After(d) }

// good checks what must hold throughout the change.
func (r *rolling) good() {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Logf("longest time without a leader: %v; tokens: %v", r.gap.Round(time.Millisecond), r.tokens)
	assert.Less(r, r.gap, rollingT/2, "a role was without a leader for longer than a hand-over")
	assert.False(r, r.ledAt.IsZero(), "nobody ever led")
	assert.IsIncreasing(r, r.tokens)
	assert.Less(r, time.Since(r.ledAt), rollingT/2, "nobody leads in the end")
}

// TestHostsChange moves a group to three other hosts, and another one from three to five hosts and back.
func TestHostsChange(t *testing.T) {
	if testing.Short() {
		t.Skip("80 seconds")
	}
	t.Run("to three others", func(t *testing.T) {
		t.Parallel()
		r := newRolling(t, "abcdef")
		for _, id := range []string{"a", "b", "c"} {
			r.start(id, "abc", "")
		}
		r.lead(2 * rollingT)
		for _, id := range []string{"d", "e", "f"} {
			r.start(id, "abc", "def")
		}
		r.restart("abc", "abc", "def")
		r.restart("def", "def", "")
		r.stop("abc")
		r.lead(2 * rollingT)
		r.good()
	})
	t.Run("to five and back", func(t *testing.T) {
		t.Parallel()
		r := newRolling(t, "abcde")
		for _, id := range []string{"a", "b", "c"} {
			r.start(id, "abc", "")
		}
		r.lead(2 * rollingT)
		r.start("d", "abc", "abcde")
		r.start("e", "abc", "abcde")
		r.restart("abc", "abc", "abcde")
		r.restart("abcde", "abcde", "")
		r.restart("abcde", "abcde", "bcd")
		r.restart("bcd", "bcd", "")
		r.stop("ae")
		r.lead(2 * rollingT)
		r.good()
	})
}

// The three hosts that serve are a majority of the new list and of all hosts. But only one of them is
// in the old list, and one of three is no majority.
func TestBothListsNeedAMajority(t *testing.T) {
	t.Parallel()
	hosts := peers.Hosts(t, 5)
	c := peers.Config{Hosts: hosts[:3], Next: hosts}
	for _, h := range hosts[2:] {
		serve(t, c, h.ID)
	}
	m := start(t, config(c, "m"))
	select {
	case <-m.leads:
		require.Fail(t, "leads without a majority of the old list")
	case <-time.After(4 * time.Second):
	}
	serve(t, c, "b")
	token(t, m)
}
