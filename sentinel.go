package neli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/kafkalog"
	"github.com/goneli/neli/internal/logqueue"
	"github.com/goneli/neli/internal/redact"
	"github.com/goneli/neli/internal/sentinel"
	"github.com/goneli/neli/kafka"
)

// sentinelVariable is the environment variable with the default of Config.Sentinel.
const sentinelVariable = "NELI_SENTINEL"

// RunSentinel watches the members on this machine that register with it (Config.Sentinel). When a
// member dies, it releases the member's roles, so that other processes lead within round trips
// instead of after Config.HeartbeatTimeout. It works until ctx is done and then returns nil. It
// returns an error if the socket cannot be made, if the system is not Linux 5.3 or later, or if cfg
// is invalid; that error lists everything that is wrong with cfg.
//
// It acts only on deaths that the kernel reports. If the whole machine or its network fails, or a
// process hangs or is suspended, or while no sentinel runs, fail-over takes HeartbeatTimeout as
// without a sentinel. Several sentinels on different sockets do no harm. Requests that
// the dead process sent may arrive after its successor has begun: use fencing tokens.
// docs/sentinel.md has the rest.
//
// cfg.Sentinel is the path of the unix socket on which members register. It is required here, and
// $NELI_SENTINEL does not count. Only this process's user and root may be able to write to its
// directory. If others may write to a directory above that, only members of the same user register;
// all register if this process is root. A missing directory is made with mode 0750; its mode decides
// which users can reach the socket. A socket left by a killed sentinel is replaced.
//
// RunSentinel also uses KafkaConfig (leave it empty with a Provider of small logs), Name, Logger,
// LoginToken and Provider (of the same kind as the members'), and ignores the rest of cfg, since one
// sentinel watches members of any group. Logger receives deaths and Releases at Info, trouble at
// Warn. The sentinel needs READ, WRITE and DESCRIBE on the members' topics.
//
// allow has patterns, as of path.Match, of the leader topics to watch (of the groups, with small
// logs and no broker). Members of other topics are refused. Without patterns no topic is refused.
func RunSentinel(ctx context.Context, cfg Config, allow ...string) error {
	if ctx == nil {
		return errors.New("neli: RunSentinel: ctx is nil")
	}
	logger, lines := logqueue.New(or(cfg.Logger, slog.New(slog.DiscardHandler)).Handler())
	cfg.Logger = logger
	defer func() { lines.Flush(time.After(lastLines)) }()
	cfg.Name = or(cfg.Name, defaultName())
	p := newPost(cfg, allow)
	if err := p.check(); err != nil {
		return fmt.Errorf("neli: RunSentinel: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	hub := sentinel.NewHub(ctx, p.options())
	defer hub.Wait()
	defer stop()
	server, err := sentinel.Listen(cfg.Sentinel, hub, cfg.Logger)
	if err != nil {
		return fmt.Errorf("neli: RunSentinel: %w", err)
	}
	cfg.Logger.Info("the sentinel listens", "socket", cfg.Sentinel)
	if err := server.Serve(ctx); err != nil {
		return fmt.Errorf("neli: RunSentinel: %w", err)
	}
	return nil
}

// post is the configuration of a sentinel, and the patterns of the topics that it may watch.
type post struct {
	Config
	allow []string
}

// newPost copies what the caller may change later.
func newPost(cfg Config, allow []string) *post {
	cfg.KafkaConfig = maps.Clone(cfg.KafkaConfig)
	return &post{cfg, slices.Clone(allow)}
}

// options returns the options of the Hub, which connects registered members, their deaths and their logs.
func (p *post) options() sentinel.Options {
	return sentinel.Options{Open: p.open, Allow: p.allow, Rules: p.rules, Now: clock.System().Now, Logger: p.Logger}
}

// check checks the fields that a sentinel uses as New does: it also makes the clients that the sentinel would use.
func (p *post) check() error {
	probe := Config{KafkaConfig: p.KafkaConfig, Name: p.Name, LoginToken: p.LoginToken, Provider: p.Provider, Logger: p.Logger, LeaderGroupID: "sentinel"}
	set, f := probe.check("")
	set.endTokensSoon()
	checkSocket(f, "Sentinel", p.Sentinel)
	for _, pattern := range p.allow {
		_, err := path.Match(pattern, "")
		f.check(err == nil, "allow", pattern, "must be a pattern as of path.Match")
	}
	f.properties(set)
	return set.secrets.Err(f.err())
}

// rules returns the part of the rules that is the same for all groups.
func (p *post) rules() sentinel.Rules {
	return sentinel.Rules{Process: newID(), Name: p.Name, Random: randomBelow}
}

// Errors if a member and the sentinel use different kinds of logs.
var (
	errNoBroker = errors.New("the member contends on small logs without a broker, and the sentinel has a broker")
	errBroker   = errors.New("the member contends in Kafka, and the sentinel has small logs without a broker")
)

// open opens the logs of a group.
func (p *post) open(at sentinel.Place, logger *slog.Logger) (elector.Log, error) {
	_, small := p.Provider.(kafka.SmallLogs)
	switch {
	case small && at.Topic != "":
		return nil, errBroker
	case !small && at.Topic == "":
		return nil, errNoBroker
	}
	cfg := Config{KafkaConfig: p.KafkaConfig, LeaderGroupID: at.Group, LeaderTopic: at.Topic, Name: p.Name, DisableTopicCreation: true,
		Logs: at.Logs, HeartbeatTimeout: at.T, MaxClockDrift: at.Rho, Logger: logger, Provider: p.Provider, LoginToken: p.LoginToken}
	switch {
	case small:
		cfg.LeaderTopic = "none" // without it the group would have to name a topic
	case at.Logs > 1: // members register the complete name, and resolve completes it
		cfg.LeaderTopic = strings.TrimSuffix(at.Topic, kafkalog.SmallTopicName("", at.Logs, at.T, at.Rho))
	}
	set, f := cfg.check("")
	if err := f.err(); err != nil {
		return nil, err
	}
	if !small {
		set.topic = at.Topic // the registered name, whatever it ends with
	}
	on, err := set.open(false)
	if err != nil {
		set.endTokensSoon()
		return nil, set.secrets.Err(err)
	}
	return secretiveLog{on.Log, set.secrets, set.endTokensSoon}, nil
}

// secretiveLog removes secrets from the errors of a log, because members see these errors. Its
// Open succeeds only once the identity of the log is known, and its Close also ends the call of
// Config.LoginToken.
type secretiveLog struct {
	elector.Log
	secrets redact.Secrets
	ended   func() // called once the log is closed
}

func (l secretiveLog) Close() {
	l.Log.Close()
	l.ended()
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

// watched is this process's side of a sentinel.
type watched struct {
	socket string
	client *sentinel.Client // nil: no sentinel is configured
	secret string
}

// resolveSentinel decides whether a sentinel is to watch this process, by default the one on the given socket.
func (s *settings) resolveSentinel(socket string, f *faults) {
	f.check(s.Sentinel == "" || s.Mode == Exclusive, "Sentinel", s.Sentinel, "needs Mode Exclusive: in the other one nothing can be released")
	socket = or(s.Sentinel, socket)
	if socket == "" || s.Mode != Exclusive || s.Observer {
		return
	}
	field := "Sentinel"
	if s.Sentinel == "" {
		field = "$" + sentinelVariable
	}
	if !checkSocket(f, field, socket) {
		return
	}
	s.Sentinel = socket
	s.watched = watched{socket: socket, client: sentinel.NewClient(socket, s.logger), secret: sentinel.NewSecret()}
	s.process = sentinel.ProcessID(s.watched.secret)
	if t, takes := s.Provider.(sentinel.Taker); takes {
		t.TakeSentinel(s.watched.client)
	}
}

// checkSocket adds a fault if the path of a socket is wrong, and reports whether it is right.
func checkSocket(f *faults, field, path string) bool {
	err := sentinel.CheckSocket(path)
	if err != nil {
		const most = 120
		if len(path) > most {
			path = path[:most] + "…"
		}
		f.check(false, field, path, err.Error())
	}
	return err == nil
}

// opened registers this process once the identity of its logs is known. id is the topic's id. Small logs
// call it before their topic, or their list of hosts, is found.
func (s *settings) opened(ctx context.Context, log elector.Log, id string) {
	if s.watched.client == nil {
		return
	}
	if s.majority {
		if id = kafkalog.Identity(ctx, log); id == "" && (s.logs > 0 || ctx.Err() != nil) {
			return
		}
	}
	s.watched.client.Opened(s.registration(id))
}

// registration is what this process tells its sentinel.
func (s *settings) registration(id string) sentinel.Registration {
	reg := sentinel.Registration{Topic: s.topic, TopicID: id, Logs: s.logs, Group: s.LeaderGroupID, Process: s.process, Secret: s.watched.secret,
		Name: s.Name, T: s.HeartbeatTimeout, Rho: s.MaxClockDrift}
	if s.majority && s.logs == 0 {
		reg.Topic = "" // there is no broker
	}
	return reg
}

// run keeps this process registered. goodbye deregisters it and waits for the answer.
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

// state returns Stats.Sentinel.
func (w watched) state() string {
	if w.client == nil {
		return string(sentinel.None)
	}
	if s := w.client.State(); s == sentinel.Watching || s == sentinel.Refused {
		return string(s)
	}
	return string(sentinel.None)
}
