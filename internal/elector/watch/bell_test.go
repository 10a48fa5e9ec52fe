package watch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// heard is how many of some waiters were woken since the last call.
func heard(waiters []<-chan struct{}) (n int) {
	for _, w := range waiters {
		select {
		case <-w:
			n++
		default:
		}
	}
	return n
}

func TestVeryManyAreWokenLessOften(t *testing.T) {
	for n, second := range map[int]int{manyWaiters - 1: manyWaiters - 1, manyWaiters: 0} {
		synctest.Test(t, func(t *testing.T) {
			b, done := NewBell(), make(chan struct{})
			go b.Announce(done)
			defer close(done)
			var waiters []<-chan struct{}
			for range n {
				w, stop := b.Notify()
				defer stop()
				waiters = append(waiters, w)
			}
			left, stop := b.Notify()
			stop()
			turn := b.Turn()
			b.Ring()
			require.NotEqual(t, turn, b.Turn())
			synctest.Wait()
			require.Equal(t, n, heard(waiters))
			b.Ring()
			synctest.Wait()
			require.Equal(t, second, heard(waiters), "%d have work to do", n)
			time.Sleep(time.Duration(n) * restPerWaiter)
			synctest.Wait()
			require.Equal(t, n-second, heard(waiters))
			require.Zero(t, heard([]<-chan struct{}{left}), "it waits no more")
		})
	}
}
