package peers

import (
	"sync"
	"time"
)

const (
	// repeatEvery is after how long a host logs the same trouble again.
	repeatEvery = time.Minute
	// maxLines is how many different lines of one limit it logs within that time.
	maxLines = 20
)

// logLimit limits what others can make a host log. A process that is refused tries again every few seconds,
// and a stranger chooses part of the text.
type logLimit struct {
	mu    sync.Mutex
	since time.Time
	said  map[string]bool // since then
}

// due reports whether a line with this text is to be logged.
func (l *logLimit) due(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.said == nil || time.Since(l.since) >= repeatEvery {
		l.since, l.said = time.Now(), map[string]bool{}
	}
	if l.said[text] || len(l.said) == maxLines {
		return false
	}
	l.said[text] = true
	return true
}
