/*
Package metrics has a Prometheus collector for a Neli. Its directory also has rules.yaml with alerts
and dashboard.json for Grafana.

	c, err := metrics.NewCollector(n)
	...
	prometheus.MustRegister(c)

The collector calls [neli.Neli.Stats] once for each scrape, and costs nothing in between. Make one for
each Neli and register it: nothing is global, and nothing registers itself. All series have the label
group. None has a label for roles or members, so a process has fewer than 140 series, however many
roles and members there are. [WithRoles] adds up to two series for each of up to [MaxRoles] roles.

docs/metrics.md explains the metrics; it is generated from this package. docs/runbook.md says what to
do when an alert fires. For OpenTelemetry, register the collector with a registry of its own, and
connect that to the Prometheus bridge of go.opentelemetry.io/contrib.

The metrics are no check of leadership. A sample is as old as its scrape: before you do the work, call
IsLeaderOf.
*/
package metrics

//go:generate go test -run TestDocument -update .
