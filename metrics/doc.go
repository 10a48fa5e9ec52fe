/*
Package metrics shows a Neli to Prometheus: a collector, and beside it rules.yaml with
alerts and dashboard.json for Grafana.

	c, err := metrics.NewCollector(n)
	...
	prometheus.MustRegister(c)

The collector is pull only: it asks [neli.Neli.Stats] once for each scrape, and costs
nothing in between. There is one for each Neli; nothing is global, and nothing is
registered by itself. Series have the label group, and none has a label for roles or
members, so that there are fewer than a hundred of them however many roles there are;
[WithRoles] adds two for each of at most [MaxRoles] roles.

What the metrics mean is in docs/metrics.md, which is written from this package, and what
to do when one of the alerts fires in docs/runbook.md. For OpenTelemetry register the
collector with a registry of its own, and hand that to the Prometheus bridge of
go.opentelemetry.io/contrib.

What it does not do: it is no check of leadership. A sample is as old as its scrape;
whoever is about to do the work asks IsLeaderOf.
*/
package metrics

//go:generate go test -run TestDocument -update .
