package sim

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/seeded"
)

// sigma is σ of the design, the greatest slew of an ordinary clock.
const sigma = 0.1

// machine is the clocks of one process. The lock guards them.
type machine struct {
	began time.Time
	mu    sync.Mutex
	seeded.Clock
	setBack time.Duration // true time at which the wall clock was last set back; −1: never
	resumed time.Duration // true time at which the machine last resumed; −1: never

	reads   atomic.Int64 // how often the library has read the clocks
	checked atomic.Int64 // true time at which reads was last checked; 0: not yet
}

func newMachine(began time.Time, raw, slew float64) *machine {
	m := &machine{began: began, setBack: -1, resumed: -1, Clock: seeded.NewClock(time.Since(began), clock.Instant{Mono: clock.Mono(1000 * time.Hour),
		Wall: clock.Wall(250_000 * time.Hour), Raw: clock.Raw(3000 * time.Hour), Boot: clock.Boot(4000 * time.Hour)})}
	m.Raw, m.Slew = raw, slew
	return m
}

// change changes the clocks from now on.
func (m *machine) change(f func(now time.Duration)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Since(m.began)
	m.Piece(now)
	f(now)
}

// library is the machine as the library sees it. It counts the readings, so that a busy loop is noticed.
type library struct{ *machine }

// Now implements clock.Clock.
func (l library) Now() clock.Instant {
	l.reads.Add(1)
	return l.machine.Now()
}

// Now returns the readings of all clocks.
func (m *machine) Now() clock.Instant {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Read(time.Since(m.began))
}

// Glance implements clock.Clock.
func (m *machine) Glance() clock.Instant {
	t := m.Now()
	t.Raw, t.Boot = 0, 0
	return t
}

// slewTo makes the ordinary clocks run faster or slower than the raw one.
func (m *machine) slewTo(by float64) { m.change(func(time.Duration) { m.Slew = by }) }

// pause stops all clocks.
func (m *machine) pause() { m.change(func(time.Duration) { m.Paused = true }) }

// suspend stops the machine, unless its wall clock was set back within a lease. After both, an
// earlier stamp would look younger than it is by the ordinary clocks alone. The assumptions exclude
// that.
func (m *machine) suspend(lease time.Duration) {
	m.change(func(now time.Duration) {
		if m.setBack < 0 || now-m.setBack > lease {
			m.Suspended = true
		}
	})
}

func (m *machine) resume() {
	m.change(func(now time.Duration) {
		if m.Suspended {
			m.resumed = now
		}
		m.Suspended, m.Paused = false, false
	})
}

// set sets the wall clock. If the machine was suspended within a lease, the clock is only set
// forward, for the same reason.
func (m *machine) set(d, lease time.Duration) {
	m.change(func(now time.Duration) {
		if d < 0 && (m.Suspended || m.Paused || m.resumed >= 0 && now-m.resumed <= lease) {
			d = -d
		}
		if d < 0 {
			m.setBack = now
		}
		m.At.Wall = m.At.Wall.Add(d)
	})
}

// rate returns the rate of the ordinary clocks, for counting.
func (m *machine) rate() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return (1 + m.Raw) * (1 + m.Slew)
}
