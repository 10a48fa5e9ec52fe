package peers

import (
	"context"
	"time"
)

// LogSet is a set of small logs ...
type LogSet interface {
	Logs() int
	Next(ctx context.Context, timeout time.Duration) (LogEntry, bool, error)
	Append(log int, id string, value []byte, ballot int64, report func(error)) error
	Close() error
}

type LogEntryKind int

const (
	LogReset LogEntryKind = iota
	LogRecord
	LogAlive
)

// LogEntry is ...
type LogEntry struct {
	Log    int
	Kind   LogEntryKind
	ID     string
	Offset int64
	Value  []byte
	First  int64
	End    int64
	Top    int64
}
