package sentinel

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goneli/neli/internal/lease"
)

const (
	countingThreads = 4
	stride          = 64 // bytes: a cache line for each counter
	countersFile    = 3
)

// counters are in memory shared with another process, whose threads increment them.
type counters []byte

func mapCounters(fd int) (counters, error) {
	return unix.Mmap(fd, 0, countingThreads*stride, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func (c counters) at(i int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&c[i*stride])) }

func (c counters) sum() (n uint64) {
	for i := range countingThreads {
		n += c.at(i).Load()
	}
	return n
}

// count increments counters, one on each of several threads, until the process is killed.
func count() {
	c, err := mapCounters(countersFile)
	if err != nil {
		panic(err)
	}
	for i := range countingThreads {
		go func() {
			runtime.LockOSThread()
			for {
				c.at(i).Add(1)
				if c.at(i).Load()%1024 == 0 {
					runtime.Gosched() // the machine is shared
				}
			}
		}()
	}
}

// kills returns how many processes to kill: NELI_KILLS, or 200.
func kills() int {
	if n, err := strconv.Atoi(os.Getenv("NELI_KILLS")); err == nil && n > 0 {
		return n
	}
	if testing.Short() {
		return 20
	}
	return 200
}

// Safety depends on this: once the Release of a process is in the log, the process does nothing any
// more. Its threads increment counters in shared memory, and the counters must stand still from then on.
func TestNothingCountsAfterItsRelease(t *testing.T) {
	var mu sync.Mutex
	memory := map[string]counters{}
	released := map[string]uint64{} // by process: the sum when its Release was appended
	p := startPost(t, socketIn(directory(t)), nil)
	p.log.mu.Lock()
	before := p.log.appended
	p.log.appended = func(r *lease.Record) {
		if r.Kind == lease.Release {
			mu.Lock()
			if c := memory[r.Session.Process]; c != nil {
				if _, again := released[r.Session.Process]; !again {
					released[r.Session.Process] = c.sum()
				}
			}
			mu.Unlock()
		}
		before(r)
	}
	p.log.mu.Unlock()

	const together = 2
	n, counted := kills(), 0
	for first := 0; first < n; first += together {
		var members []*process
		for i := range min(together, n-first) {
			m := startCounting(t, p.socket, &mu, memory)
			members = append(members, m)
			p.log.claim(m.id, int32(1+i), minimumT)
		}
		for _, m := range members {
			m.says("watching")
		}
		for _, m := range members {
			m.kill()
		}
		for _, m := range members {
			<-waitFor(p, m.id)
			_ = m.cmd.Wait() // the process and all its threads have ended
			mu.Lock()
			c := memory[m.id]
			at := released[m.id]
			delete(memory, m.id)
			delete(released, m.id)
			mu.Unlock()
			require.NotZero(t, at, "the test's own: it has counted")
			counted++
			require.Equal(t, at, c.sum(), "it counted on after its Release was appended")
			require.NoError(t, unix.Munmap(c))
		}
	}
	t.Logf("%d processes were killed, and none counted on", counted)
}

func startCounting(t *testing.T, socket string, mu *sync.Mutex, memory map[string]counters) *process {
	t.Helper()
	fd, err := unix.MemfdCreate("counters", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	f := os.NewFile(uintptr(fd), "counters")
	defer f.Close()
	require.NoError(t, f.Truncate(countingThreads*stride))
	c, err := mapCounters(fd)
	require.NoError(t, err)
	m := startChild(t, socket, "count", func(cmd *exec.Cmd) { cmd.ExtraFiles = []*os.File{f} })
	mu.Lock()
	memory[m.id] = c
	mu.Unlock()
	return m
}

// waitFor returns a channel that is closed when a process was released.
func waitFor(p *post, process string) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			p.mu.Lock()
			freed := p.freed[process]
			p.mu.Unlock()
			if freed {
				return
			}
			select {
			case <-p.news:
			case <-p.t.Context().Done():
				return
			}
		}
	}()
	return done
}
