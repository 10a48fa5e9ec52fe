package neli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/kafkalog"
	"github.com/goneli/neli/internal/redact"
	"github.com/goneli/neli/internal/sentinel"
	"github.com/goneli/neli/kafka"
)

// sentinelVariable is the environment variable that Config.Sentinel defaults to.
const sentinelVariable = "NELI_SENTINEL"

// SentinelConfig configures RunSentinel.
type SentinelConfig struct {
	// Socket is the path of the unix socket at which members register. Nobody but this process's user and
	// root may be able to write to its directory, which is made with mode 0750 if it is missing; who may reach it is what the mode of the directory
	// says. A socket that a killed sentinel has left there is replaced. Required.
	Socket string

	// KafkaConfig is passed to the Kafka clients, as Config.KafkaConfig is. It takes READ, WRITE and
	// DESCRIBE on the members' topics. Empty with a Provider of small logs.
	KafkaConfig KafkaConfigMap

	// Allow are patterns, as of path.Match, of the leader topics (with small logs and no
	// broker, of the groups) that may be watched. Members of others are refused. Default: all.
	Allow []string

	// Name tells this process from others in the topic. Default: {host}_{pid}_{time}.
	Name string

	// Logger is told of deaths and Releases at Info, of trouble at Warn. Default: discard.
	Logger *slog.Logger

	// Token is as Config.Token.
	Token func(context.Context) (Token, error)

	// Provider is as Config.Provider; its kind must be that of the members.
	Provider kafka.Provider
}

// RunSentinel watches members on this machine (Config.Sentinel), and gives back what those
// held that have died, so that others lead within round trips in place of
// Config.HeartbeatTimeout. It works until ctx is done, and returns nil then. It returns an error if the
// socket cannot be made, cfg is wrong, or the system is not Linux 5.3 or later.
//
// It takes for dead only whom the kernel calls dead. What fails as a whole (the machine, its
// network), and a process that hangs or is suspended, costs HeartbeatTimeout as without a
// sentinel; so does everything while no sentinel runs. Several at different sockets do no harm.
// Requests of a dead process that are under way may arrive after its successor has begun:
// use fencing tokens. docs/sentinel.md has the rest.
func RunSentinel(ctx context.Context, cfg SentinelConfig) error {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Name = or(cfg.Name, defaultName())
	if err := cfg.check(); err != nil {
		return fmt.Errorf("neli: RunSentinel: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	hub := cfg.hub(ctx)
	defer hub.Wait()
	defer stop()
	server, err := sentinel.Listen(cfg.Socket, hub, cfg.Logger)
	if err != nil {
		return fmt.Errorf("neli: RunSentinel: %w", err)
	}
	cfg.Logger.Info("the sentinel listens", "socket", cfg.Socket)
	if err := server.Serve(ctx); err != nil {
		return fmt.Errorf("neli: RunSentinel: %w", err)
	}
	return nil
}

// hub is what joins members, deaths and logs.
func (c *SentinelConfig) hub(ctx context.Context) *sentinel.Hub {
	return sentinel.NewHub(ctx, sentinel.Options{Open: c.open, Allow: c.Allow, Rules: c.rules, Now: clock.System().Now, Logger: c.Logger})
}

func (c *SentinelConfig) check() error {
	f := &faults{}
	f.check(c.Socket != "", "Socket", "", "must be the path of a unix socket")
	for _, pattern := range c.Allow {
		_, err := path.Match(pattern, "")
		f.check(err == nil, "Allow", pattern, "must be a pattern as of path.Match")
	}
	f.check(len(c.Name) <= maxNameLength, "Name", c.Name, fmt.Sprintf("must be at most %d bytes of UTF-8", maxNameLength))
	_, small := c.Provider.(kafka.SmallLogs)
	f.check(!small || len(c.KafkaConfig) == 0, "KafkaConfig", "", "must be empty with small logs: there is no broker")
	checkProperties(c.KafkaConfig, f)
	return f.err()
}

// rules are what does not depend on the group.
func (c *SentinelConfig) rules() sentinel.Rules {
	return sentinel.Rules{Process: newID(), Name: c.Name, Random: randomBelow}
}

// errNoBroker and errBroker: members and sentinel have different kinds of logs.
var (
	errNoBroker = errors.New("the member contends on small logs without a broker, and the sentinel has a broker")
	errBroker   = errors.New("the member contends in Kafka, and the sentinel has small logs without a broker")
)

// open opens the logs of a group.
func (c *SentinelConfig) open(at sentinel.Place, logger *slog.Logger) (elector.Log, error) {
	_, small := c.Provider.(kafka.SmallLogs)
	switch {
	case small && at.Topic != "":
		return nil, errBroker
	case !small && at.Topic == "":
		return nil, errNoBroker
	}
	cfg := Config{KafkaConfig: c.KafkaConfig, LeaderGroupID: at.Group, LeaderTopic: at.Topic, Name: c.Name, DisableTopicCreation: true,
		Logs: at.Logs, HeartbeatTimeout: at.T, MaxClockDrift: at.Rho, Logger: logger, Provider: c.Provider, Token: c.Token}
	set, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	if !small {
		set.topic = at.Topic // members say the whole name
	}
	log, err := openLog(c.Provider, set)
	if err != nil {
		return nil, set.secrets.Err(err)
	}
	return secretiveLog{log, set.secrets}, nil
}

// secretiveLog is a log whose errors, which members are told, have no secrets in them. It is open when it is
// known what tells it from all others.
type secretiveLog struct {
	elector.Log
	secrets redact.Secrets
}

func (l secretiveLog) Open(ctx context.Context) (int, string, error) {
	m, id, err := l.Log.Open(ctx)
	if err == nil && id == "" {
		id = kafkalog.Identity(ctx, l.Log)
	}
	return m, id, l.secrets.Err(own(err))
}

func (l secretiveLog) Next(ctx context.Context, timeout time.Duration) (elector.Entry, bool, error) {
	e, ok, err := l.Log.Next(ctx, timeout)
	return e, ok, l.secrets.Err(own(err))
}

func (l secretiveLog) Watch(ctx context.Context) error { return l.secrets.Err(own(l.Log.Watch(ctx))) }

// watched is this process's part with a sentinel.
type watched struct {
	client *sentinel.Client // nil: no sentinel is configured
	secret string
}

// resolveSentinel finds out whether a sentinel is to watch this process.
func (c Config) resolveSentinel(s *settings, f *faults) {
	f.check(c.Sentinel == "" || c.Mode == Exclusive, "Sentinel", c.Sentinel, "needs Mode Exclusive: in the other one nothing can be released")
	socket := or(c.Sentinel, os.Getenv(sentinelVariable))
	if socket == "" || c.Mode != Exclusive || c.Observer {
		return
	}
	s.watched = watched{client: sentinel.NewClient(socket, s.logger), secret: sentinel.NewSecret()}
	s.instance = sentinel.ProcessID(s.watched.secret)
	if t, takes := c.Provider.(sentinel.Taker); takes {
		t.TakeSentinel(s.watched.client)
	}
}

// opened registers this process once it is known where it contends. id is the topic's. Small
// logs are opened before their topic is found.
func (s *settings) opened(ctx context.Context, log elector.Log, id string) {
	if s.watched.client == nil {
		return
	}
	if s.small {
		if id = kafkalog.Identity(ctx, log); id == "" && s.logs > 0 {
			return
		}
	}
	s.watched.client.Opened(s.registration(id))
}

// registration is what a sentinel is told.
func (s *settings) registration(id string) sentinel.Registration {
	reg := sentinel.Registration{Topic: s.topic, TopicID: id, Logs: s.logs, Group: s.group, Process: s.instance, Secret: s.watched.secret,
		Name: s.name, T: s.timeout, Rho: s.drift}
	if s.small && s.logs == 0 {
		reg.Topic = "" // there is no broker
	}
	return reg
}

// run keeps this process registered, until the returned function is called, which says goodbye and
// waits for the answer.
func (w watched) run() (goodbye func()) {
	if w.client == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.client.Run(ctx)
	}()
	return func() {
		stop()
		<-ended
	}
}

// state is Stats.Sentinel.
func (w watched) state() string {
	if w.client == nil {
		return string(sentinel.None)
	}
	if s := w.client.State(); s == sentinel.Watching || s == sentinel.Refused {
		return string(s)
	}
	return string(sentinel.None)
}
