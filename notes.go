package neli

import (
	"context"
	"log/slog"
)

// notes collects log lines while a mutex is held, to be written once it is not:
// a log handler is the user's code, and may be slow or call back.
type notes struct {
	log  *slog.Logger
	list []note
}

type note struct {
	level slog.Level
	text  string
	args  []any
}

func (n *notes) enabled(level slog.Level) bool {
	return n.log.Enabled(context.Background(), level)
}

func (n *notes) add(level slog.Level, text string, args ...any) {
	if n.enabled(level) {
		n.list = append(n.list, note{level, text, args})
	}
}

// take returns a function that writes what was collected.
func (n *notes) take() func() {
	if len(n.list) == 0 {
		return func() {}
	}
	list := n.list
	n.list = nil
	return func() {
		for _, e := range list {
			n.log.Log(context.Background(), e.level, e.text, e.args...)
		}
	}
}
