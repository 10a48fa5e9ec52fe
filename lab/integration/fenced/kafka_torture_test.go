package fenced

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/lab/kafkatest"
)

// envFor sets how long TestSuspendedLeaders runs; the default is a minute.
const envFor = "NELI_FENCE"

// TestSuspendedLeaders runs terms of 100 to 600 ms one after another on a real broker, with each client. A leader may be
// suspended between any two steps. Each transaction writes the number after the last one that its leader has read, with
// the leader's token. No number may be missing, and no token may go back.
func TestSuspendedLeaders(t *testing.T) {
	t.Parallel()
	span := time.Minute
	if text := os.Getenv(envFor); text != "" {
		var err error
		span, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	cluster := kafkatest.Run(t, kafkatest.Options{})
	a := newAdmin(t, cluster.Bootstrap())
	for _, w := range writers { // asks for the brokers' settings
		require.NoError(t, w.check(limited(t), account{bootstrap: cluster.Bootstrap()}))
	}
	t.Run("as it ships", func(t *testing.T) {
		r := race(t, a, cluster.Bootstrap(), false, func(since time.Duration, _ *results) bool { return since > span })
		require.Zero(t, r.back.Load(), "tokens that went back")
		require.Zero(t, r.gaps.Load(), "numbers that are missing or there twice")
		require.Positive(t, r.commits.Load())
		require.Positive(t, r.refused.Load(), "no former leader was refused: nothing was tried")
		require.Positive(t, r.suspended.Load())
		require.LessOrEqual(t, r.unread.Load(), 1+r.terms.Load()/100, "terms that could not read their state")
	})
	t.Run("without the question", func(t *testing.T) {
		// Leaders refuse each other all the time, and on a busy machine they may commit nothing for long.
		r := race(t, a, cluster.Bootstrap(), true, func(since time.Duration, r *results) bool {
			return since > 20*time.Second && r.commits.Load() >= 100 || since > 10*time.Minute
		})
		require.GreaterOrEqual(t, r.commits.Load(), int64(100), "too little was tried")
		require.Positive(t, r.back.Load(), "a term that never hears that it is over does no harm: the test sees nothing")
	})
}

// results are the results of a run.
type results struct {
	terms, suspended, commits, rightful, refused, unread, gaps, back atomic.Int64
}

func (r *results) String() string {
	return fmt.Sprintf("%d terms, %d suspensions of 20 ms to 1.5 s, %d commits, %d refusals of former leaders and %d of rightful ones, %d terms could not read their state, %d gaps, %d tokens went back",
		r.terms.Load(), r.suspended.Load(), r.commits.Load(), r.refused.Load(), r.rightful.Load(), r.unread.Load(), r.gaps.Load(), r.back.Load())
}

// reign is one term. Its goroutine represents a process that may be suspended.
type reign struct {
	*results
	a       admin
	who     account
	topic   string
	token   int64
	current *atomic.Int64 // the token of the term that lasts, 0 for none
	deaf    bool          // the term never learns that it is over
	asked   int
	random  *rand.Rand
}

// Valid reports whether the term lasts. The process may be suspended after it has got the answer.
func (r *reign) Valid() bool {
	valid := r.lasts()
	if r.asked++; r.deaf {
		valid = r.asked < 40
	}
	r.suspend("valid")
	return valid
}

func (r *reign) lasts() bool { return r.current.Load() == r.token }

func (r *reign) suspend(string) {
	var d time.Duration
	switch r.random.IntN(12) {
	case 0:
		d = time.Duration(20+r.random.IntN(1480)) * time.Millisecond
	case 1, 2:
		d = time.Duration(r.random.IntN(20)) * time.Millisecond
	default:
		return
	}
	if d >= 20*time.Millisecond {
		r.suspended.Add(1)
	}
	<-time.After(d)
}

// mostDeaf is how many terms that never hear of their end may be under way: more of them would refuse each other so often
// that none commits.
const mostDeaf = 4

// race runs terms one after another until there are enough, and checks what they have written.
func race(t *testing.T, a admin, bootstrap string, deaf bool, enough func(since time.Duration, r *results) bool) *results {
	topic := fresh("suspended")
	a.create(topic, nil)
	res := &results{}
	var current atomic.Int64
	var all sync.WaitGroup
	random := rand.New(rand.NewPCG(1, 2))
	underway := make(chan struct{}, mostDeaf)
	for began, token := time.Now(), int64(1); !enough(time.Since(began), res); token++ {
		res.terms.Add(1)
		r := &reign{results: res, a: a, who: account{bootstrap: bootstrap}, topic: topic, token: token, current: &current, deaf: deaf, random: rand.New(rand.NewPCG(uint64(token), 7))}
		ctx, cancel := context.WithCancel(context.Background())
		if deaf {
			ctx, cancel = context.WithTimeout(context.Background(), 20*time.Second)
			underway <- struct{}{}
		}
		current.Store(token)
		all.Go(func() {
			r.lead(t, ctx)
			if deaf {
				<-underway
			}
		})
		<-time.After(time.Duration(100+random.IntN(500)) * time.Millisecond)
		current.Store(0)
		if !deaf { // a process that was suspended sees the end of its context late
			time.AfterFunc(time.Duration(random.IntN(300))*time.Millisecond, cancel)
		}
		t.Cleanup(cancel)
	}
	all.Wait()
	var last, number int64
	require.NoError(t, a.read(limited(t), topic, 0, func(text string) {
		var token, n int64
		_, err := fmt.Sscanf(text, "%d %d", &token, &n)
		require.NoError(t, err)
		if token < last {
			res.back.Add(1)
		}
		if n != number+1 {
			res.gaps.Add(1)
		}
		last, number = token, n
	}))
	t.Log(res)
	return res
}

// lead is what the process does in its term.
func (r *reign) lead(t *testing.T, ctx context.Context) {
	w := writers[r.random.IntN(len(writers))]
	err := w.lead(ctx, r.who, fence.TransactionalID(r.topic, 0), r.topic, r, func() pause { return r.suspend }, func(ctx context.Context, commit commitText) error {
		n, err := r.state(ctx)
		for k := 1; err == nil; k++ {
			r.suspend("between")
			if k%8 == 0 && !r.lasts() { // an application checks, but not before each action
				return nil
			}
			// This context outlives the term, since its end must not be what stops a late write.
			long, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			rightful := r.lasts()
			err = commit(long, fmt.Sprintf("%d %d", r.token, n+1))
			cancel()
			switch {
			case err == nil:
				n++
				r.commits.Add(1)
			case rightful && r.lasts():
				r.rightful.Add(1)
			default:
				r.refused.Add(1)
			}
		}
		return err
	})
	switch {
	case err == nil, errors.Is(err, fence.ErrStale), errors.Is(err, fence.ErrRefused), ctx.Err() != nil:
	case errors.Is(err, errUnread): // this test's own question, on a busy machine
		r.unread.Add(1)
		t.Logf("term %d on %s: %v", r.token, w.name, err)
	default:
		t.Errorf("term %d on %s: %v", r.token, w.name, err)
	}
}

var errUnread = errors.New("cannot read the last number")

// state returns the last committed number.
func (r *reign) state(ctx context.Context) (n int64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %w", errUnread, err)
		}
	}()
	end, err := r.a.end(r.topic, 0)
	if err != nil {
		return 0, err
	}
	for _, from := range []int64{max(0, end-1000), 0} { // an hour's records are many
		err = r.a.read(ctx, r.topic, from, func(text string) {
			var token int64
			_, _ = fmt.Sscanf(text, "%d %d", &token, &n)
		})
		if err != nil || n > 0 {
			return n, err
		}
	}
	return n, nil
}
