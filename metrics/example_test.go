package metrics_test

import (
	"log"
	"net/http"

	"github.com/goneli/neli"
	"github.com/goneli/neli/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func ExampleNewCollector() {
	n, err := neli.New(neli.Config{LeaderGroupID: "invoicing", Roles: 16})
	if err != nil {
		log.Print(err)
		return
	}
	defer n.Close()
	c, err := metrics.NewCollector(n, metrics.WithRoles(16), metrics.WithLabels(prometheus.Labels{"env": "prod"}))
	if err != nil {
		log.Print(err)
		return
	}
	prometheus.MustRegister(c)
	http.Handle("/metrics", promhttp.Handler())
	log.Print(http.ListenAndServe("localhost:9108", nil))
}
