package peers_test

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/peers"
)

const within = 2 * time.Minute

func config(c peers.Config, name string) neli.Config {
	return neli.Config{Provider: peers.Provider(c), LeaderGroupID: "test", Name: name, HeartbeatTimeout: time.Second}
}

// candidate is a member that leads whenever it can.
type candidate struct {
	*neli.Neli
	leads chan int64 // tokens
	ended chan error
	close func()
}

func start(t *testing.T, c neli.Config) *candidate {
	t.Helper()
	n, err := neli.New(c)
	require.NoError(t, err)
	m := &candidate{Neli: n, leads: make(chan int64, 100), ended: make(chan error, 1)}
	go func() {
		m.ended <- n.Lead(context.Background(), func(ctx context.Context, l neli.Leadership) error {
			m.leads <- l.Token
			<-ctx.Done()
			return nil
		})
	}()
	m.close = sync.OnceFunc(func() {
		assert.NoError(t, n.Close())
		assert.ErrorIs(t, <-m.ended, neli.ErrClosed)
	})
	t.Cleanup(func() { m.close() })
	return m
}

// token waits until a member leads, and returns the token.
func token(t *testing.T, m *candidate) int64 {
	t.Helper()
	select {
	case token := <-m.leads:
		return token
	case <-time.After(within):
		require.FailNow(t, "nobody leads")
		return 0
	}
}

func TestMembersElectALeaderByThemselves(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 5} {
		c := peers.Config{Hosts: peers.Hosts(t, n)}
		var members []*candidate
		for _, h := range c.Hosts {
			own := c
			own.Self = h.ID
			members = append(members, start(t, config(own, h.ID)))
		}
		var first *candidate
		var last int64
		timeout := time.After(within)
		for first == nil {
			for _, m := range members {
				select {
				case last = <-m.leads:
					first = m
				case <-timeout:
					require.FailNow(t, "nobody leads")
				case <-time.After(time.Millisecond):
				}
			}
		}
		require.Positive(t, last)
		if n == 1 {
			continue // its log stops with it
		}
		first.close()
		next := make(chan int64)
		stop := make(chan struct{})
		for _, m := range members {
			if m != first {
				go func() {
					for token := int64(0); ; {
						select {
						case token = <-m.leads:
						case <-stop:
							return
						}
						if token > last { // a smaller one is of a term that a stall of the machine has ended
							select {
							case next <- token:
							case <-stop:
							}
							return
						}
					}
				}()
			}
		}
		select {
		case <-next:
		case <-time.After(within):
			assert.Fail(t, "no successor with a greater token")
		}
		close(stop)
		for _, m := range members {
			m.close()
		}
	}
}

// serve runs a log host, as in a process of its own, until the returned function is called.
func serve(t *testing.T, c peers.Config, id string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c.Self, c.Group, c.HeartbeatTimeout = id, "test", cmp.Or(c.HeartbeatTimeout, time.Second)
	up := make(chan struct{})
	c.Logger = slog.New(awaited{slog.DiscardHandler, "log host is up, with an empty log", sync.OnceFunc(func() { close(up) })})
	ended := make(chan error, 1)
	go func() { ended <- peers.ListenAndServe(ctx, c) }()
	stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	select {
	case <-up:
	case <-time.After(within):
		require.FailNow(t, "the host is not up")
	}
	return stop
}

// awaited is a log handler that calls a function for a certain line.
type awaited struct {
	slog.Handler
	text string
	call func()
}

func (a awaited) Enabled(context.Context, slog.Level) bool { return true }

func (a awaited) WithAttrs([]slog.Attr) slog.Handler { return a }

func (a awaited) Handle(_ context.Context, r slog.Record) error {
	if r.Message == a.text {
		a.call()
	}
	return nil
}

// TestEveryHostIsReplacedInTurn replaces all log hosts one after the other. The leader must go on.
func TestEveryHostIsReplacedInTurn(t *testing.T) {
	t.Parallel()
	c := peers.Config{Hosts: peers.Hosts(t, 3)}
	member := config(c, "m")
	member.HeartbeatTimeout = 6 * time.Second // the lease must outlast a busy machine's stalls
	c.HeartbeatTimeout = member.HeartbeatTimeout
	stops := map[string]func(){}
	for _, h := range c.Hosts {
		stops[h.ID] = serve(t, c, h.ID)
	}
	m := start(t, member)
	first := token(t, m)
	for _, h := range c.Hosts {
		stops[h.ID]()
		led(t, m, first, time.Second/2)
		stops[h.ID] = serve(t, c, h.ID)
		led(t, m, first, 2*member.HeartbeatTimeout+time.Second) // an empty log is claimed after T
	}
	stops["a"]()
	stops["b"]()
	require.Eventually(t, func() bool { return !m.IsLeader() }, within, 10*time.Millisecond, "leads with one log, which is not a majority")
	serve(t, c, "a")
	assert.Greater(t, token(t, m), first)
}

// led checks that a member leads with the same token for d.
func led(t *testing.T, m *candidate, token int64, d time.Duration) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); <-ticker.C {
		now, leads := m.Token(0)
		require.True(t, leads)
		require.Equal(t, token, now)
	}
}

func TestObserverWithoutALogSeesTheLeader(t *testing.T) {
	c := peers.Config{Hosts: peers.Hosts(t, 3)}
	var members []*candidate
	for _, h := range c.Hosts {
		own := c
		own.Self = h.ID
		members = append(members, start(t, config(own, h.ID)))
	}
	watching := config(c, "o")
	watching.Observer = true
	o, err := neli.New(watching)
	require.NoError(t, err)
	defer o.Close()
	require.Eventually(t, func() bool {
		holder, held := o.Holder(0)
		if !held {
			return false
		}
		for _, m := range members {
			if m.IsLeader() {
				return holder.Name == m.Config().Name
			}
		}
		return false
	}, within, 10*time.Millisecond)
}

func TestProviderHasNoKafkaClients(t *testing.T) {
	p := peers.Provider(peers.Config{})
	_, err := p.Producer(nil, nil)
	require.ErrorContains(t, err, "there is no Kafka here")
	_, err = p.LogReader(nil, nil)
	require.ErrorContains(t, err, "there is no Kafka here")
	_, err = p.GroupConsumer(nil, nil)
	require.ErrorContains(t, err, "there is no Kafka here")
	_, err = p.Admin(nil)
	require.ErrorContains(t, err, "there is no Kafka here")
}
