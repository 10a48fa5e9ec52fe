package integration

import (
	"maps"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/proxy"
)

// env is the Kafka for a group of cases: one that the suite has started, or the one that NELI_BOOTSTRAP names, which it
// must not disturb.
type env struct {
	bootstrap string
	cluster   *kafkatest.Cluster // nil: foreign
	proxies   chan *proxy.Proxy
	session   time.Duration // shortest session timeout that the broker takes
	proves    bool          // at the end of an election its topic has to prove the rules
}

// quickGroups makes groups settle quickly, and sessions short, since these cases test the library and not the broker's
// timeouts.
var quickGroups = map[string]string{
	"group.initial.rebalance.delay.ms":         "300",
	"group.min.session.timeout.ms":             "1000",
	"group.consumer.session.timeout.ms":        "6000",
	"group.consumer.min.session.timeout.ms":    "6000",
	"group.consumer.heartbeat.interval.ms":     "500",
	"group.consumer.min.heartbeat.interval.ms": "500",
	"num.network.threads":                      "1", // for each of many listeners
}

// newEnv starts a cluster with proxies in front of it, or, for a single broker, takes the foreign one.
func newEnv(t *testing.T, brokers, proxies int, props map[string]string) *env {
	t.Helper()
	if addr := os.Getenv(kafkatest.EnvBootstrap); addr != "" {
		if brokers > 1 {
			kafkatest.NotForeign(t)
		}
		return &env{bootstrap: addr, session: 6 * time.Second}
	}
	all := maps.Clone(quickGroups)
	maps.Copy(all, props)
	cluster := kafkatest.Run(t, kafkatest.Options{Brokers: brokers, ProxiedListeners: proxies, BrokerProps: all})
	e := &env{bootstrap: cluster.Bootstrap(), cluster: cluster, proxies: make(chan *proxy.Proxy, proxies), session: 2 * time.Second}
	for i := range proxies {
		p, err := proxy.New(cluster, i)
		require.NoError(t, err)
		t.Cleanup(p.Close)
		e.proxies <- p
	}
	return e
}

// patient returns the same Kafka with longer sessions, for a case in which a leader must keep its session. The shortest
// one ends if the process, or its broker, gets no processor for that long.
func (e *env) patient() *env {
	out := *e
	out.session = max(e.session, stockSession)
	return &out
}

// own skips a case that needs a broker of the suite's own.
func (e *env) own(t *testing.T) {
	t.Helper()
	if e.cluster == nil {
		kafkatest.NotForeign(t)
	}
}

// proxy lends a proxy to the test.
func (e *env) proxy(t *testing.T) *proxy.Proxy {
	t.Helper()
	e.own(t)
	p := <-e.proxies
	t.Cleanup(func() {
		assert.NoError(t, p.Restore())
		e.proxies <- p
	})
	return p
}

// through makes a member reach Kafka only through a proxy.
func through(p *proxy.Proxy) func(*memberParams) {
	return func(m *memberParams) {
		for i := range m.Contenders {
			m.Contenders[i].Bootstrap = p.Bootstrap()
		}
	}
}
