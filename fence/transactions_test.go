package fence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/fence"
)

var errBroken = errors.New("connection is broken")

// transact runs Transactions in a bubble. Its work commits one record.
func transact(t *testing.T, d *desk, lasts int, work func(context.Context, *fence.Producer[string]) error) error {
	t.Helper()
	var err error
	synctest.Test(t, func(t *testing.T) {
		err = fence.Transactions(t.Context(), &term{d, lasts}, d.client, work)
	})
	require.Zero(t, d.open, "clients that were not closed")
	return err
}

func oneRecord(ctx context.Context, p *fence.Producer[string]) error { return p.Commit(ctx, "r") }

func TestTermIsCheckedBeforeAndAfterItsInit(t *testing.T) {
	d := &desk{}
	require.NoError(t, transact(t, d, 9, oneRecord))
	require.Equal(t, "[valid open init valid begin produce commit close]", d.said())
	require.Equal(t, []string{"r"}, d.committed)
}

func TestTermThatIsOverDoesNotInitialise(t *testing.T) {
	d := &desk{}
	require.ErrorIs(t, transact(t, d, 0, oneRecord), fence.ErrStale)
	require.Equal(t, "[valid]", d.said())
}

func TestTermThatEndsDuringItsInitBeginsNoWork(t *testing.T) {
	d := &desk{}
	require.ErrorIs(t, transact(t, d, 1, oneRecord), fence.ErrStale)
	require.Equal(t, "[valid open init valid close]", d.said(), "a stale term works")
}

func TestEachAttemptChecksTheTermAndOpensAClient(t *testing.T) {
	d := &desk{fail: map[string][]error{"init": {errBroken, errBroken}}}
	require.NoError(t, transact(t, d, 9, oneRecord))
	require.Equal(t, "[valid open init close valid open init close valid open init valid begin produce commit close]", d.said())
	d = &desk{fail: map[string][]error{"init": {errBroken, errBroken}}}
	require.ErrorIs(t, transact(t, d, 1, oneRecord), fence.ErrStale)
	require.Equal(t, "[valid open init close valid]", d.said(), "a stale term tries again")
}

func TestEachAttemptMayTakeTwiceAsLongAsTheOneBefore(t *testing.T) {
	d := &desk{fail: map[string][]error{"init": {errHangs, errHangs}}}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.NoError(t, fence.Transactions(t.Context(), &term{d, 9}, d.client, oneRecord))
		require.InDelta(t, 0.3, time.Since(began).Seconds(), 0.05)
	})
}

// After any refusal the client is not used again, because some clients report success afterwards.
func TestRefusedProducerIsReplaced(t *testing.T) {
	for _, at := range []string{"begin", "produce", "commit"} {
		t.Run(at, func(t *testing.T) {
			d := &desk{fail: map[string][]error{at: {errBroken}}}
			attempts := 0
			err := transact(t, d, 9, func(ctx context.Context, p *fence.Producer[string]) error {
				attempts++
				err := p.Commit(ctx, "r")
				if err == nil {
					return nil
				}
				require.ErrorIs(t, err, fence.ErrRefused)
				require.ErrorIs(t, err, errBroken)
				calls := d.said()
				require.Equal(t, err, p.Commit(ctx, "s"), "the client is used after a refusal")
				require.Equal(t, calls, d.said(), "the client is used after a refusal")
				return err
			})
			require.NoError(t, err)
			require.Equal(t, 2, attempts)
			require.Equal(t, []string{"r"}, d.committed)
		})
	}
}

func TestCommitsAreSeparateTransactions(t *testing.T) {
	d := &desk{}
	require.NoError(t, transact(t, d, 9, func(ctx context.Context, p *fence.Producer[string]) error {
		return errors.Join(p.Commit(ctx, "a"), p.Commit(ctx), p.Commit(ctx, "b", "c"))
	}))
	require.Equal(t, []string{"a", "b", "c"}, d.committed)
	require.Equal(t, "[valid open init valid begin produce commit begin produce commit close]", d.said())
}

func TestLaterTermFencesAnEarlierOne(t *testing.T) {
	d := &desk{}
	err := transact(t, d, 2, func(ctx context.Context, p *fence.Producer[string]) error {
		require.NoError(t, fence.Transactions(ctx, &term{d, 9}, d.client, func(ctx context.Context, p *fence.Producer[string]) error {
			return p.Commit(ctx, "later")
		}))
		return p.Commit(ctx, "late")
	})
	require.ErrorIs(t, err, fence.ErrStale)
	require.Equal(t, []string{"later"}, d.committed)
}

func TestPermanentErrorsEndTransactions(t *testing.T) {
	own := errors.New("no such invoice")
	permanent := errors.Join(fence.ErrPermanent, errors.New("no right"))
	for name, c := range map[string]struct {
		d    *desk
		work func(context.Context, *fence.Producer[string]) error
		want error
	}{
		"work":  {&desk{}, func(context.Context, *fence.Producer[string]) error { return own }, own},
		"init":  {&desk{fail: map[string][]error{"init": {permanent}}}, oneRecord, fence.ErrPermanent},
		"write": {&desk{fail: map[string][]error{"produce": {permanent}}}, oneRecord, fence.ErrPermanent},
	} {
		t.Run(name, func(t *testing.T) {
			err := transact(t, c.d, 9, c.work)
			require.ErrorIs(t, err, c.want)
			require.NotErrorIs(t, err, fence.ErrRefused)
		})
	}
	err := fence.Transactions(t.Context(), &term{&desk{}, 9}, func() (fence.Client[string], error) { return nil, own }, oneRecord)
	require.ErrorIs(t, err, own)
}

// The context of Lead ends with a cause. Transactions returns that, so that Lead treats the error as
// the end of the context.
func TestCauseOfTheContextIsReturned(t *testing.T) {
	revoked := errors.New("revoked")
	for _, at := range []string{"ask", "init", "work"} {
		t.Run(at, func(t *testing.T) {
			d := &desk{fail: map[string][]error{}}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			switch at {
			case "ask":
				cancel(revoked)
			case "init":
				d.fail["init"] = []error{errHangs}
				time.AfterFunc(time.Millisecond, func() { cancel(revoked) })
			}
			err := fence.Transactions(ctx, &term{d, 9}, d.client, func(ctx context.Context, p *fence.Producer[string]) error {
				d.fail["commit"] = []error{errBroken}
				cancel(revoked)
				return p.Commit(ctx, "r")
			})
			require.ErrorIs(t, err, revoked)
			require.NotErrorIs(t, err, fence.ErrStale)
			require.Zero(t, d.open)
		})
	}
}

func TestConcurrentCommitsAreRefused(t *testing.T) {
	inside, done := make(chan struct{}), make(chan struct{})
	client := &slow{inside: inside, done: done}
	err := fence.Transactions(t.Context(), &term{&desk{}, 9}, func() (fence.Client[string], error) { return client, nil },
		func(ctx context.Context, p *fence.Producer[string]) error {
			first := make(chan error)
			go func() { first <- p.Commit(ctx, "a") }()
			<-inside
			require.ErrorContains(t, p.Commit(ctx, "b"), "another Commit")
			close(done)
			return <-first
		})
	require.NoError(t, err)
}

// slow is a client whose Produce takes long.
type slow struct{ inside, done chan struct{} }

func (*slow) Init(context.Context) error { return nil }
func (*slow) Begin() error               { return nil }
func (s *slow) Produce(context.Context, []string) error {
	close(s.inside)
	<-s.done
	return nil
}
func (*slow) Commit(context.Context) error { return nil }
func (*slow) Close()                       {}
