package watch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// woken is how many of some waiters were woken since the last call.
func woken(waiters []<-chan struct{}) (n int) {
	synctest.Wait()
	for _, w := range waiters {
		n += len(w)
		for range len(w) {
			<-w
		}
	}
	return n
}

func TestManyWaitersAreWokenLessOften(t *testing.T) {
	for n, second := range map[int]int{manyWaiters - 1: manyWaiters - 1, manyWaiters: 0} {
		synctest.Test(t, func(t *testing.T) {
			b, done, waiters := NewBell(), make(chan struct{}), make([]<-chan struct{}, n)
			go b.Announce(done)
			defer close(done)
			for i := range waiters {
				waiters[i], _ = b.Notify()
			}
			left, stop := b.Notify()
			stop()
			b.Ring()
			require.Equal(t, n, woken(waiters))
			b.Ring()
			require.Equal(t, second, woken(waiters), "%d have work to do", n)
			time.Sleep(time.Duration(n) * restPerWaiter)
			require.Equal(t, n-second, woken(waiters))
			require.Zero(t, woken([]<-chan struct{}{left}), "it waits no more")
		})
	}
}
