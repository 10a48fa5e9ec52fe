package scenario

import (
	"sync"
	"time"

	"github.com/goneli/neli"
	"github.com/stretchr/testify/require"
)

// Member is one process: a Neli, with one of several ways to drive it.
type Member struct {
	*neli.Neli
	As string // its name, at the broker, too

	c       *Cluster
	mu      sync.Mutex
	events  []neli.Event
	onEvent func(neli.Event) // runs in the barrier
	inside  bool             // the barrier or the task is running
	tasks   int
}

// Barrier receives the events.
func (m *Member) Barrier(e neli.Event) {
	m.Enter()
	defer m.Leave()
	m.c.Say("%s: %s", m.As, e)
	m.mu.Lock()
	m.events = append(m.events, e)
	f := m.onEvent
	m.mu.Unlock()
	if f != nil {
		f(e)
	}
}

// Start pulses the member in the background.
func (m *Member) Start() {
	m.c.Helper()
	_, err := m.Background(m.Task)
	require.NoError(m.c, err)
}

// Task does a small piece of work.
func (m *Member) Task() {
	m.Enter()
	defer m.Leave()
	m.mu.Lock()
	m.tasks++
	m.mu.Unlock()
	time.Sleep(5 * time.Millisecond)
}

// Enter asserts, until Leave, that the barrier and the task never run at the same time.
func (m *Member) Enter() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inside {
		m.c.Errorf("%s: barrier and task run side by side", m.As)
	}
	m.inside = true
}

// Leave ends what Enter began.
func (m *Member) Leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inside = false
}

// Upon sets what the barrier does for each event.
func (m *Member) Upon(f func(neli.Event)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onEvent = f
}

// Hold lets the barrier take d for each revocation, and returns a channel with the revocations.
func (m *Member) Hold(d time.Duration) (told chan neli.LeaderRevoked) {
	told = make(chan neli.LeaderRevoked, 10)
	m.Upon(func(e neli.Event) {
		if r, ok := e.(neli.LeaderRevoked); ok {
			told <- r
			time.Sleep(d)
		}
	})
	return told
}

// Tasks returns how often the task ran.
func (m *Member) Tasks() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tasks
}

// Kinds returns the kinds of the events so far.
func (m *Member) Kinds() []string {
	var out []string
	for _, e := range m.Events() {
		switch e.(type) {
		case neli.LeaderAcquired:
			out = append(out, "acquired")
		case neli.LeaderRevoked:
			out = append(out, "revoked")
		case neli.LeaderFenced:
			out = append(out, "fenced")
		}
	}
	return out
}

// Events returns the events so far.
func (m *Member) Events() []neli.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]neli.Event(nil), m.events...)
}

// Last returns the newest event, or nil.
func (m *Member) Last() neli.Event {
	es := m.Events()
	if len(es) == 0 {
		return nil
	}
	return es[len(es)-1]
}

// ID returns the member's own id.
func (m *Member) ID() string {
	for _, x := range m.Members() {
		if x.Self {
			return x.ID
		}
	}
	return ""
}
