package franz

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"
)

// logger passes a client's log lines to a slog.Logger, all at debug level. franz-go recovers by
// itself from what it warns about, and repeats the warning with every attempt. It returns what it
// cannot recover from, and the library logs that once.
type logger struct{ log *slog.Logger }

func (l logger) Level() kgo.LogLevel {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		return kgo.LogLevelDebug
	}
	return kgo.LogLevelNone
}

func (l logger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	attrs := []slog.Attr{slog.String("severity", level.String())}
	for i := 0; i+1 < len(keyvals); i += 2 {
		attrs = append(attrs, slog.String(fmt.Sprint(keyvals[i]), fmt.Sprint(keyvals[i+1])))
	}
	l.log.LogAttrs(context.Background(), slog.LevelDebug, msg, slog.GroupAttrs("client", attrs...))
}
