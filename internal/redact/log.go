package redact

import (
	"context"
	"fmt"
	"log/slog"
)

// Logger returns a logger that writes to log with all secrets cut out, from messages, attributes
// and errors in attributes. If s is nil, it returns log itself.
func (s Secrets) Logger(log *slog.Logger) *slog.Logger {
	if s == nil {
		return log
	}
	return slog.New(redactingHandler{s, log.Handler()})
}

// redactingHandler passes records on without secrets.
type redactingHandler struct {
	secrets Secrets
	next    slog.Handler
}

func (h redactingHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h redactingHandler) Handle(ctx context.Context, r slog.Record) error {
	shown := slog.NewRecord(r.Time, r.Level, h.secrets.Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		shown.AddAttrs(h.secrets.attr(a))
		return true
	})
	return h.next.Handle(ctx, shown)
}

func (h redactingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return redactingHandler{h.secrets, h.next.WithAttrs(h.secrets.attrs(attrs))}
}

func (h redactingHandler) WithGroup(name string) slog.Handler {
	return redactingHandler{h.secrets, h.next.WithGroup(name)}
}

func (s Secrets) attrs(in []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(in))
	for i, a := range in {
		out[i] = s.attr(a)
	}
	return out
}

// attr redacts an attribute. It keeps the type of a value without secrets, since handlers format
// numbers, times and errors each in their own way.
func (s Secrets) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		v = slog.GroupValue(s.attrs(v.Group())...)
	case slog.KindString:
		v = slog.StringValue(s.Text(v.String()))
	case slog.KindAny:
		var text string
		switch value := v.Any().(type) {
		case []byte: // as text, not as numbers
			text = string(value)
		default:
			text = fmt.Sprintf("%+v", value)
		}
		if shown := s.Text(text); shown != text {
			v = slog.StringValue(shown)
		}
	}
	return slog.Attr{Key: a.Key, Value: v}
}

// Err returns err with all secrets cut out of its text. It still wraps the same causes for errors.Is and errors.As.
func (s Secrets) Err(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	shown := s.Text(text)
	if shown == text {
		return err
	}
	return As(err, shown)
}

// As returns an error that wraps err and has another text.
func As(err error, text string) error { return &redactedError{text, err} }

type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }
