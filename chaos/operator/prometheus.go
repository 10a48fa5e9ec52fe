package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goneli/neli/chaos/jail"
)

// scrapeEvery is how often Prometheus scrapes, and evaluates the rules.
const scrapeEvery = time.Second

// startPrometheus starts Prometheus on the monitor's host, with the alerts of metrics/rules.yaml.
func (s *site) startPrometheus() error {
	var cfg strings.Builder
	every := scrapeEvery.String()
	fmt.Fprintf(&cfg, "global: {scrape_interval: %s, scrape_timeout: %s, evaluation_interval: %s}\n", every, every, every)
	fmt.Fprintf(&cfg, "rule_files: [%q]\nscrape_configs:\n- job_name: neli\n  static_configs:\n", filepath.Join(s.root, "metrics/rules.yaml"))
	for _, name := range machineNames {
		fmt.Fprintf(&cfg, "  - {targets: [%q], labels: {instance: %q}}\n", s.page(name), name)
	}
	file := filepath.Join(jail.Scratch, "prometheus.yml")
	if err := os.WriteFile(file, []byte(cfg.String()), 0o600); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.out, "prometheus.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(jail.Scratch, "prometheus"),
		"--web.listen-address="+s.address(hostMonitor, promPort))
	cmd.Stdout, cmd.Stderr = log, log
	if err := s.net.Host(hostMonitor).Start(cmd); err != nil {
		return fmt.Errorf("starting Prometheus: %w", err)
	}
	s.prom = cmd
	return nil
}

// series is one time series of a query's result, with a value for each second.
type series struct {
	Metric map[string]string
	Values []point
}

type point struct {
	at    float64 // seconds since 1970
	value float64
}

func (p *point) UnmarshalJSON(b []byte) (err error) {
	var text string
	if err := json.Unmarshal(b, &[2]any{&p.at, &text}); err != nil {
		return err
	}
	p.value, err = strconv.ParseFloat(text, 64)
	return err
}

// ask evaluates a query over a span of time by Prometheus' API.
func (s *site) ask(ctx context.Context, query string, from, to time.Time) ([]series, error) {
	at := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
	values := url.Values{"query": {query}, "start": {at(from)}, "end": {at(to)}, "step": {"1"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address(hostMonitor, promPort)+"/api/v1/query_range?"+values.Encode(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var body struct {
		Error string
		Data  struct{ Result []series }
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return nil, err
	}
	if body.Error != "" {
		return nil, fmt.Errorf("%s: %s", query, body.Error)
	}
	return body.Data.Result, nil
}

// grown returns how much a counter grew. A lower value means that the process was restarted, and
// counted from 0.
func (s series) grown() (sum float64) {
	for i := 1; i < len(s.Values); i++ {
		d := s.Values[i].value - s.Values[i-1].value
		if d < 0 {
			d = s.Values[i].value
		}
		sum += d
	}
	return sum
}

// measured is what Prometheus says of the time after a fault.
type measured struct {
	leaderless int      // seconds in which no process said that it leads
	most       float64  // the most leaders at once
	margin     float64  // the greatest age of a leader's evidence, in T
	downs      []string // targets that could not be scraped, and for how many seconds
	ended      []string // terms that ended, by machine and reason
	alerts     []string // pending or firing, and for how many seconds
}

// measure asks Prometheus for all of it.
func (s *site) measure(ctx context.Context, from, to time.Time) (m measured, err error) {
	ask := func(query string) []series {
		found, askErr := s.ask(ctx, query, from, to)
		err = cmp.Or(err, askErr)
		return found
	}
	for _, l := range ask(`sum(neli_is_leader) or vector(0)`) {
		for _, p := range l.Values {
			m.most = max(m.most, p.value)
			if p.value == 0 {
				m.leaderless++
			}
		}
	}
	for _, l := range ask(`max(neli_evidence_age_seconds / neli_heartbeat_timeout_seconds)`) {
		for _, p := range l.Values {
			m.margin = max(m.margin, p.value)
		}
	}
	for _, l := range ask(`up == 0`) {
		m.downs = append(m.downs, fmt.Sprintf("`%s` %d s", l.Metric["instance"], len(l.Values)))
	}
	for _, l := range ask(`neli_terms_ended_total`) {
		if n := math.Round(l.grown()); n > 0 {
			m.ended = append(m.ended, fmt.Sprintf("`%s` %s", l.Metric["instance"], l.Metric["reason"]))
		}
	}
	by := map[string]int{}
	for _, l := range ask(`ALERTS`) {
		name := l.Metric["alertname"] + " " + l.Metric["alertstate"]
		by[name] = max(by[name], len(l.Values))
	}
	for name, n := range by {
		m.alerts = append(m.alerts, fmt.Sprintf("%s %d s", name, n))
	}
	for _, list := range [][]string{m.downs, m.ended, m.alerts} {
		slices.Sort(list)
	}
	return m, err
}
