// Package said keeps what is written, for example by a logger, so that a test can read it meanwhile.
package said

import (
	"log/slog"
	"strings"
	"sync"
)

// Text is an io.Writer that keeps what is written. The zero value is empty. It is safe for concurrent use.
type Text struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements [io.Writer].
func (t *Text) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

// String returns everything that was written so far.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// Count returns how often a text was written.
func (t *Text) Count(text string) int { return strings.Count(t.String(), text) }

// Logger returns a logger that writes to t, at the given level and above.
func (t *Text) Logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(t, &slog.HandlerOptions{Level: level}))
}
