package franz

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/kafka"
)

// memberClients is how many clients a member has at most: a producer, a reader and a member of the group.
const memberClients = 3

// Probe implements kafka.Prober.
func (a *admin) Probe(ctx context.Context) ([]kafka.BrokerProbe, error) {
	var probes []kafka.BrokerProbe
	var links []*link // all stay open until the end
	defer func() {
		for _, l := range links {
			l.shut(0)
		}
	}()
	for range memberClients {
		l, err := a.producer.dial(producing(a.producer.settings)...)
		if err != nil {
			return nil, err
		}
		links = append(links, l)
		known, err := noTopics().RequestWith(ctx, l)
		if err != nil {
			return nil, a.producer.outcome("ask for the brokers", err)
		}
		probes = l.probe(ctx, known.Brokers, probes)
	}
	slices.SortFunc(probes, func(x, y kafka.BrokerProbe) int { return cmp.Compare(x.ID, y.ID) })
	return probes, nil
}

// probe sends a request to each broker, and adds the outcomes to probes.
func (l *link) probe(ctx context.Context, brokers []kmsg.MetadataResponseBroker, probes []kafka.BrokerProbe) []kafka.BrokerProbe {
	outcomes := make([]kafka.BrokerProbe, len(brokers))
	var asking sync.WaitGroup
	for i, b := range brokers {
		asking.Go(func() {
			outcomes[i] = kafka.BrokerProbe{ID: int(b.NodeID), Address: net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))), Tried: 1}
			if _, err := l.Broker(int(b.NodeID)).Request(ctx, noTopics()); err != nil {
				outcomes[i].Err, outcomes[i].Failed = classify("ask a broker", unserved(err)), 1
			}
		})
	}
	asking.Wait()
	for _, o := range outcomes {
		at := slices.IndexFunc(probes, func(p kafka.BrokerProbe) bool { return p.ID == o.ID })
		if at < 0 {
			probes = append(probes, o)
			continue
		}
		p := &probes[at]
		p.Tried, p.Failed = p.Tried+o.Tried, p.Failed+o.Failed
		if p.Err == nil {
			p.Err = o.Err
		}
	}
	return probes
}

// noTopics asks for the brokers only.
func noTopics() *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // nil would ask for all
	return req
}

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
