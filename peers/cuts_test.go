package peers

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crossed starts three hosts, each behind a crossing.
func crossed(t *testing.T, timeout time.Duration) (Config, []*crossing) {
	t.Helper()
	c := Config{HeartbeatTimeout: timeout}
	real := freeAddresses(t, 3)
	var ways []*crossing
	for i := range 3 {
		ways = append(ways, newCrossing(t, real[i]))
		c.Hosts = append(c.Hosts, Host{ID: string(rune('a' + i)), Address: ways[i].address()})
	}
	for i, h := range c.Hosts {
		own := c
		own.Self, own.Listen = h.ID, real[i]
		startHost(t, own)
	}
	return c, ways
}

func TestReadingContinuesAfterACut(t *testing.T) {
	t.Parallel()
	for _, cut := range []struct {
		name  string
		do    func(*crossing)
		shows string
	}{
		{"connections reset", (*crossing).reset, ""},
		{"nothing arrives", func(w *crossing) { w.lose(true, true) }, errSilent.Error()},
		{"what is sent is lost", func(w *crossing) { w.lose(true, false) }, ""},
		{"what is received is lost", func(w *crossing) { w.lose(false, true) }, errSilent.Error()},
	} {
		t.Run(cut.name, func(t *testing.T) {
			c, ways := crossed(t, 400*time.Millisecond)
			m := join(t, c)
			m.begun(t)
			m.mustAppend(t, 1, "before")
			m.await(t, "it is read", func(logs []view) bool { return len(logs[1].records) == 1 })
			cut.do(ways[1])
			// A record that was taken during a cut is reported, whatever became of it.
			if ch, err := m.append(1, "during"); err == nil {
				_ = reported(t, ch)
			}
			if cut.shows != "" {
				m.journal.await(t, cut.shows)
			}
			ways[1].lose(false, false)
			m.await(t, "records are appended again", func([]view) bool {
				m.mu.Unlock()
				defer m.mu.Lock()
				ch, err := m.append(1, "after")
				return err == nil && reported(t, ch) == nil
			})
			assert.Equal(t, 1, m.view(1).resets, "the log began again, though no record was missed")
			assert.Equal(t, "before", m.view(1).records[0])
		})
	}
}

func TestRecordsSentIntoAOneWayCutAreGivenUp(t *testing.T) {
	c, ways := crossed(t, testTimeout) // long, so that the cut ends the connection and not a stall of the machine
	m := join(t, c)
	m.begun(t)
	ways[0].lose(true, false)
	began := time.Now()
	ch, err := m.append(0, "lost")
	require.NoError(t, err)
	require.Error(t, reported(t, ch))
	assert.Less(t, time.Since(began), within/2)
	m.mustAppend(t, 1, "the others work")
	m.mustAppend(t, 2, "the others work")
}

func TestSlowLinkDoesNotCountAsCut(t *testing.T) {
	t.Parallel()
	const timeout = 20 * time.Second // a stall of a busy machine for so long would be a cut
	c, ways := crossed(t, timeout)
	for _, w := range ways {
		w.slow(timeout / 100)
	}
	m := join(t, c)
	m.begun(t)
	for i := range 10 {
		m.mustAppend(t, i%3, "x")
	}
	assert.NotContains(t, m.journal.String(), "retrying")
}

// TestEveryRecordIsReportedOnce cuts connections at random. It checks that each record taken is
// reported once, and that each record reported as appended is read. The rig checks that no reader
// misses or repeats a record.
func TestEveryRecordIsReportedOnce(t *testing.T) {
	t.Parallel()
	c, ways := crossed(t, 300*time.Millisecond)
	members := []*member{join(t, c), join(t, c)}
	for _, m := range members {
		m.begun(t)
	}
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	stop := make(chan struct{})
	var cutting sync.WaitGroup
	cutting.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(50+random.IntN(150)) * time.Millisecond):
			}
			w := ways[random.IntN(3)]
			switch random.IntN(4) {
			case 0:
				w.reset()
			case 1:
				w.lose(random.IntN(2) == 0, random.IntN(2) == 0)
			default:
				w.lose(false, false)
			}
		}
	})
	type sent struct {
		value string
		log   int
		ch    <-chan error
	}
	var all []sent
	end := time.Now().Add(4 * time.Second)
	for n := 0; time.Now().Before(end); n++ {
		for log := range 3 {
			value := fmt.Sprintf("%d/%d", n, log)
			if ch, err := members[n%2].append(log, value); err == nil {
				all = append(all, sent{value, log, ch})
			}
		}
		<-time.After(5 * time.Millisecond)
	}
	close(stop)
	cutting.Wait()
	for _, w := range ways {
		w.lose(false, false)
	}
	appended := make([][]string, 3)
	for _, s := range all {
		if reported(t, s.ch) == nil {
			appended[s.log] = append(appended[s.log], s.value)
		}
	}
	t.Logf("%d records", len(all))
	for log := range 3 {
		// On a busy machine all records may have been lost in the cuts. One more must be appended once the
		// member has noticed which connections were cut.
		last := ""
		for n := 0; last == ""; n++ {
			value := fmt.Sprintf("last %d/%d", n, log)
			if err := members[0].sure(log, value, 0); err == nil {
				last = value
			} else {
				require.Less(t, n, 100, "%v", err)
			}
		}
		appended[log] = append(appended[log], last)
		for _, m := range members {
			m.await(t, "what was appended is read", func(logs []view) bool {
				read := map[string]int{}
				for _, r := range logs[log].records {
					read[r]++
				}
				for _, v := range appended[log] {
					if read[v] != 1 {
						return false
					}
				}
				return true
			})
			assert.Equal(t, 1, m.view(log).resets)
		}
	}
	for _, m := range members {
		m.leave(t)
	}
	for _, s := range all {
		assert.Empty(t, s.ch, "reported twice")
	}
}
