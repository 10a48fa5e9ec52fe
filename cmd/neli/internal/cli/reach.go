package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
)

// Exit codes of the verbs that call scout.reach, for what it finds before they read anything.
const (
	codeMissing   = 3 // the topic is missing
	codeUnreached = 5 // no broker answered
)

// reachWithin limits how long scout.reach waits for the topic's description.
const reachWithin = 10 * time.Second

// scout is a Provider that passes on what brokers answer about the topic. The library retries until
// the topic is there; a command that people run has to say why it is not.
type scout struct {
	kafka.Provider
	answers chan error
	admins  chan kafka.Admin       // the first one made
	reading chan map[string]string // the properties of the first reader
}

func newScout(p kafka.Provider) scout {
	return scout{p, make(chan error, 1), make(chan kafka.Admin, 1), make(chan map[string]string, 1)}
}

// LogReader implements kafka.Provider.
func (s scout) LogReader(props map[string]string, log *slog.Logger) (kafka.LogReader, error) {
	select {
	case s.reading <- props:
	default: // a later one
	}
	return s.Provider.LogReader(props, log)
}

// Admin implements kafka.Provider.
func (s scout) Admin(p kafka.Producer) (kafka.Admin, error) {
	a, err := s.Provider.Admin(p)
	if err != nil {
		return nil, err
	}
	select {
	case s.admins <- a:
	default: // a later one
	}
	return scoutAdmin{a, s.answers}, nil
}

type scoutAdmin struct {
	kafka.Admin
	answers chan error
}

// Topic implements kafka.Admin.
func (a scoutAdmin) Topic(ctx context.Context, topic string) (kafka.TopicInfo, error) {
	info, err := a.Admin.Topic(ctx, topic)
	if err == nil || ctx.Err() == nil || !errors.Is(context.Cause(ctx), context.Canceled) {
		select {
		case a.answers <- err:
		default: // an earlier answer was not taken yet, or nobody waits for one
		}
	}
	return info, err
}

// reach waits until a broker has described the topic. It returns an error with an exit code if the
// topic is missing or no broker answers in time. If n fails it returns n's error. It returns nil when
// ctx is done.
func (s scout) reach(ctx context.Context, n *neli.Neli, cfg neli.Config, within time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- n.Await() }() // returns when the caller closes n, at the latest
	limit := time.NewTimer(within)
	defer limit.Stop()
	var last error
	for {
		select {
		case err := <-s.answers:
			switch {
			case err == nil:
				return nil
			case errors.Is(err, kafka.ErrUnknownTopic):
				return exit{codeMissing, fmt.Errorf("topic %s is missing; neli run creates it", printable(cfg.LeaderTopic))}
			}
			last = err
		case err := <-ended:
			return explained(err, cfg.KafkaConfig)
		case <-limit.C:
			if last == nil {
				last = errors.New("no answer")
			}
			return exit{codeUnreached, fmt.Errorf("no broker reached at %v within %v: %s", cfg.KafkaConfig["bootstrap.servers"], within,
				withoutSecrets(last, cfg.KafkaConfig))}
		case <-ctx.Done():
			return nil
		}
	}
}

// isExit reports whether an error has this exit code.
func isExit(err error, code int) bool {
	var e exit
	return errors.As(err, &e) && e.code == code
}
