package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/said"
	"github.com/goneli/neli/nelitest"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
)

// patience is how long a step may take on a busy machine.
const patience = 2 * time.Minute

// A real Prometheus scrapes three members for a minute. One of them hands over, and one is cut off for
// a while. Then each panel of the dashboard has data, and the rules were evaluated without an error.
func TestPrometheusScrapesMembers(t *testing.T) {
	program := tool(t, "prometheus")
	b := nelitest.NewBroker(nelitest.Options{})
	defer b.Close()
	members, targets := map[string]*neli.Neli{}, map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		n := join(t, b, name, func(cfg *neli.Config) { cfg.HeartbeatTimeout = 2 * time.Second })
		defer n.Close()
		members[name], targets[name] = n, serve(t, n)
	}
	p := startPrometheus(t, program, targets)
	began := time.Now()
	minute := time.After(time.Minute)

	p.eventually(t, "all roles are led", `sum(neli_roles_led)`, "5")
	first := leader(t, members, "")
	require.NoError(t, members[first].StepDown(t.Context()))
	p.eventually(t, "another one leads", `sum(neli_roles_led{instance!="`+first+`"})`, "5")
	second := leader(t, members, first)
	b.CutOff(second, nelitest.LinkAll)
	p.eventually(t, "others lead what it led", `sum(neli_roles_led{instance!="`+second+`"})`, "5")
	p.eventually(t, "and it takes all for vacant", `neli_roles{instance="`+second+`",status="vacant"}`, "5")
	p.eventually(t, "which nobody else does", `min(sum by (instance) (neli_roles{status="vacant"}))`, "0")
	// The newest samples: on a busy machine the latest scrape may have failed, after which a plain query has no result.
	require.Equal(t, "0", p.value(t, `last_over_time(neli_is_leader{instance="`+second+`"}[1m])`))
	require.Regexp(t, `^[1-9]\d*$`, p.value(t, `sum(last_over_time(neli_terms_ended_total{instance="`+second+`",reason="lapsed"}[1m]))`))
	b.Restore(second, nelitest.LinkAll)
	p.eventually(t, "it reads on", `neli_roles{instance="`+second+`",status="vacant"}`, "0")
	<-minute

	for _, panel := range readDashboard(t).Panels {
		for _, q := range panel.Targets {
			samples := p.samples(t, expr(q.Expr, ".+", "10s"), began)
			require.Positive(t, samples, "%s shows nothing: %s", panel.Title, q.Expr)
			t.Logf("%5d samples: %s %s", samples, panel.Title, q.RefID)
		}
	}
	for _, r := range p.rules(t) {
		require.Equal(t, "ok", r.Health, "%s: %s", r.Name, r.LastError)
	}
}

// leader waits until a member other than but leads something, and returns its name.
func leader(t *testing.T, members map[string]*neli.Neli, but string) (name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, name = range slices.Sorted(maps.Keys(members)) {
			if name != but && members[name].IsLeader() {
				return true
			}
		}
		return false
	}, patience, 10*time.Millisecond, "nobody leads but %q", but)
	return name
}

// serve serves a member's metrics on loopback, and returns the address.
func serve(t *testing.T, n *neli.Neli) string {
	t.Helper()
	c, err := NewCollector(n, WithRoles(5))
	require.NoError(t, err)
	r := prometheus.NewRegistry()
	require.NoError(t, r.Register(c))
	s := httptest.NewServer(promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// server is a Prometheus on loopback, for one test.
type server struct{ url string }

// startPrometheus starts a Prometheus that scrapes every second, and waits until it is ready.
func startPrometheus(t *testing.T, program string, targets map[string]string) *server {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs("rules.yaml")
	require.NoError(t, err)
	var cfg strings.Builder
	fmt.Fprintf(&cfg, "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nrule_files: [%q]\n", rules)
	fmt.Fprintf(&cfg, "scrape_configs:\n- job_name: members\n  static_configs:\n")
	for name, address := range targets {
		fmt.Fprintf(&cfg, "  - {targets: [%q], labels: {instance: %q}}\n", address, name)
	}
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(cfg.String()), 0o600))

	address := freeAddress(t)
	var out said.Text
	cmd := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	exited := make(chan struct{})
	go func() { defer close(exited); _ = cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-exited
		}
		if t.Failed() {
			t.Logf("prometheus said:\n%s", out.String())
		}
	})
	s := &server{"http://" + address}
	require.Eventually(t, func() bool {
		r, err := http.Get(s.url + "/-/ready")
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	}, patience, 50*time.Millisecond, "prometheus is not ready")
	return s
}

// freeAddress returns an address on which no process listened a moment ago. Its port is below those that the
// system uses for outgoing connections, which come and go meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	for {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		if l, err := net.Listen("tcp", address); err == nil {
			require.NoError(t, l.Close())
			return address
		}
	}
}

// get sends a query to the HTTP API.
func (s *server) get(ctx context.Context, path string, query url.Values, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/"+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var body struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err = json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return err
	}
	if body.Status != "success" {
		return fmt.Errorf("%s: %s", path, body.Error)
	}
	return json.Unmarshal(body.Data, into)
}

// value returns the only result of a query, or why there is none.
func (s *server) value(t *testing.T, query string) string {
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := s.get(t.Context(), "query", url.Values{"query": {query}}, &data); err != nil {
		return err.Error()
	}
	if len(data.Result) != 1 {
		return fmt.Sprintf("%d results", len(data.Result))
	}
	return fmt.Sprint(data.Result[0].Value[1])
}

func (s *server) eventually(t *testing.T, what, query, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return s.value(t, query) == want }, patience, 200*time.Millisecond, "%s: %s", what, query)
}

// samples returns the number of samples of a query since a time.
func (s *server) samples(t *testing.T, query string, since time.Time) (n int) {
	t.Helper()
	var data struct {
		Result []struct{ Values [][2]any }
	}
	at := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
	require.NoError(t, s.get(t.Context(), "query_range", url.Values{"query": {query}, "start": {at(since)}, "end": {at(time.Now())}, "step": {"1"}}, &data), query)
	for _, r := range data.Result {
		for _, v := range r.Values {
			if f, err := strconv.ParseFloat(fmt.Sprint(v[1]), 64); err == nil && !math.IsNaN(f) {
				n++
			}
		}
	}
	return n
}

type evaluated struct{ Name, Health, LastError string }

func (s *server) rules(t *testing.T) []evaluated {
	t.Helper()
	var data struct{ Groups []struct{ Rules []evaluated } }
	require.NoError(t, s.get(t.Context(), "rules", nil, &data))
	require.NotEmpty(t, data.Groups)
	require.NotEmpty(t, data.Groups[0].Rules)
	return data.Groups[0].Rules
}
