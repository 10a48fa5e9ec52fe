package franz

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"
)

// logger carries a client's log lines to a slog.Logger, all of them as debug lines:
// franz-go mends by itself what it warns of, and repeats it with every attempt. What it
// does not mend, it returns, and the library logs that once.
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
