package metrics

import (
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"unicode/utf8"

	"github.com/goneli/neli"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
)

// MaxRoles is the largest number of roles that WithRoles accepts.
const MaxRoles = 1000

// Option changes what a collector shows.
type Option func(*options)

type options struct {
	labels prometheus.Labels
	roles  int
	detail bool
}

// WithLabels adds labels with fixed values to all series, in addition to group. They distinguish several
// Nelis of one group in one process. NewCollector refuses a name that the collector itself uses.
func WithLabels(labels prometheus.Labels) Option {
	return func(o *options) {
		if o.labels == nil {
			o.labels = prometheus.Labels{}
		}
		maps.Copy(o.labels, labels)
	}
}

// WithRoles adds up to two series for each of the roles 0 to below−1: whether this process leads the role,
// and if it does (exclusive mode), under which token. below must be from 1 to MaxRoles. Roles from R on get
// none.
func WithRoles(below int) Option {
	return func(o *options) { o.roles, o.detail = below, true }
}

// collector shows one Neli. It keeps nothing between two scrapes.
type collector struct {
	n        *neli.Neli
	version  string
	detailed int // WithRoles
	shown    []shown
}

// shown is a metric of the catalog that this collector shows.
type shown struct {
	metric
	desc *prometheus.Desc
}

// NewCollector returns a collector of n, which the caller registers. Collecting is safe for concurrent
// use, also before n has found its broker and after n was closed. The error lists everything that is
// wrong with the options.
func NewCollector(n *neli.Neli, opts ...Option) (prometheus.Collector, error) {
	if n == nil {
		return nil, errors.New("neli/metrics: NewCollector: n is nil")
	}
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("neli/metrics: NewCollector: %w", err)
	}
	labels := prometheus.Labels{"group": n.Config().LeaderGroupID}
	maps.Copy(labels, o.labels)
	c := &collector{n: n, version: version(), detailed: o.roles}
	for _, m := range catalog {
		if m.exclusive && n.Config().Mode != neli.Exclusive || m.detail && !o.detail {
			continue
		}
		c.shown = append(c.shown, shown{m, prometheus.NewDesc(m.name, m.help, m.labels, labels)})
	}
	return c, nil
}

func (o *options) check() error {
	var faults []error
	if o.detail && (o.roles < 1 || o.roles > MaxRoles) {
		faults = append(faults, fmt.Errorf("WithRoles: %d: must be between 1 and %d", o.roles, MaxRoles))
	}
	taken := map[string]bool{"group": true, "le": true}
	for _, m := range catalog {
		for _, l := range m.labels {
			taken[l] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.labels)) {
		switch {
		case taken[name]:
			faults = append(faults, fmt.Errorf("WithLabels: %q: is one of the collector's own labels", name))
		case !model.LegacyValidation.IsValidLabelName(name) || len(name) > 1 && name[:2] == "__":
			faults = append(faults, fmt.Errorf("WithLabels: %q: must consist of letters, digits and underscores, and must not begin with a digit or two underscores", name))
		case !utf8.ValidString(o.labels[name]):
			faults = append(faults, fmt.Errorf("WithLabels: %q: its value %q must be UTF-8", name, o.labels[name]))
		}
	}
	return errors.Join(faults...)
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.shown {
		ch <- m.desc
	}
}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := sample{collector: c, Stats: c.n.Stats()}
	for _, m := range c.shown {
		if m.timing != nil {
			ch <- histogram(m.desc, m.timing(&s))
			continue
		}
		m.values(&s, func(v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, v, labels...)
		})
	}
}

func histogram(desc *prometheus.Desc, t neli.Timing) prometheus.Metric {
	buckets := map[float64]uint64{}
	for _, b := range t.Buckets {
		buckets[b.UpTo.Seconds()] = b.Count
	}
	return prometheus.MustNewConstHistogram(desc, t.Count, t.Sum, buckets)
}

// version returns the version of the library in this binary.
func version() string {
	const path = "github.com/goneli/neli"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == path && m.Version != "" {
			return m.Version
		}
	}
	return "unknown"
}
