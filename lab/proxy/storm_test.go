package proxy

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Changes in any order work while connections come and go. None takes long, and nothing is left behind.
func TestStorm(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	before := runtime.NumGoroutine()

	t.Run("changes", func(t *testing.T) {
		p, heard := echo(t)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var clients sync.WaitGroup
		go func() {
			for {
				select {
				case <-heard:
				case <-t.Context().Done():
					return
				}
			}
		}()
		for range 8 {
			clients.Go(func() {
				for ctx.Err() == nil {
					impatient(p.Bootstrap())
				}
			})
		}

		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			how := Cut(1 + random.IntN(3))
			began := time.Now()
			var err error
			switch random.IntN(5) {
			case 0:
				err = p.CutOff(how)
			case 1:
				err = p.Hold(how)
			case 2:
				err = p.CutOff(Refuse)
			case 3:
				err = p.Latency(time.Duration(random.IntN(20)) * time.Millisecond)
			case 4:
				err = p.Restore()
			}
			require.NoError(t, err)
			assert.Less(t, time.Since(began), patience, "only a deadlock lasts that long")
		}
		clients.Wait()

		require.NoError(t, p.Restore())
		after := dial(t, p)
		after.say("one")
		after.hears("one")
	})
	noMoreThan(t, before)
}

// impatient opens a connection, and uses it until an answer is late.
func impatient(addr string) {
	c, err := net.DialTimeout("tcp", addr, 10*time.Millisecond)
	if err != nil {
		return
	}
	defer c.Close()
	lines := bufio.NewReader(c)
	for range 200 {
		if _, err := io.WriteString(c, strings.Repeat("x", rand.IntN(2000))+"\n"); err != nil {
			return
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Duration(5+rand.IntN(40)) * time.Millisecond))
		if _, err := lines.ReadString('\n'); err != nil {
			return
		}
	}
}

// noMoreThan waits until there are no more goroutines than before.
func noMoreThan(t *testing.T, before int) {
	t.Helper()
	// The condition runs on a goroutine of its own.
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 },
		patience, 20*time.Millisecond)
}
