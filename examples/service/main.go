// Command service is a whole service: an HTTP API whose keys are spread over all processes, and a job that one
// of them runs. Any process takes a request: the owner of the key answers, the others send it there. Each
// process has a status page at /neli/, a health check at /neli/healthz, and metrics at /metrics.
//
//	go run ./service -listen localhost:8001 &
//	go run ./service -listen localhost:8002 &
//	curl localhost:8001/keys/ada
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/metrics"
	"github.com/goneli/neli/nelihttp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const shards = 16 // roles 0 to 15: the same in all processes, and never changed. The job is role 16.

func main() {
	bootstrap := flag.String("bootstrap", "localhost:9092", "Kafka brokers, host:port,…")
	group := flag.String("group", "service", "the group whose members contend")
	listen := flag.String("listen", "localhost:8001", "address to serve at, to which other processes send requests")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	n, err := neli.New(neli.Config{
		KafkaConfig:   neli.KafkaConfigMap{"bootstrap.servers": *bootstrap},
		LeaderGroupID: *group,
		Advertise:     *listen,
		Roles:         shards + 1,
		Logger:        slog.Default(), // logs what it waits for
	})
	if err == nil {
		err = (&service{n: n}).run(ctx, *listen)
	}
	if err != nil {
		log.Fatal("service: ", err)
	}
}

type service struct {
	n    *neli.Neli
	gate nelihttp.Gate // keeps a shard here until its requests are answered
}

// run ends the server last, because the server forwards requests while the roles move. Shutdown comes after Close,
// because Shutdown waits for the page's event streams, which Close ends.
func (s *service) run(ctx context.Context, listen string) error {
	collector, err := metrics.NewCollector(s.n)
	if err != nil {
		return err
	}
	prometheus.MustRegister(collector)
	mux := http.NewServeMux()
	host, _, _ := net.SplitHostPort(listen) // in a cluster: a name that all processes have in common
	mux.Handle("/keys/{key}", s.keys(nelihttp.WithTargets(func(to *url.URL) bool { return to.Hostname() == host })))
	mux.Handle("/neli/", http.StripPrefix("/neli", nelihttp.Handler(s.n, nelihttp.WithMetrics("/metrics"))))
	mux.Handle("/metrics", promhttp.Handler())
	server := &http.Server{Addr: listen, Handler: mux, ReadHeaderTimeout: 5 * time.Second}

	ended := make(chan error, 1)
	go func() {
		ended <- errors.Join(s.n.Lead(ctx, s.lead), s.n.Close(), server.Shutdown(context.Background()))
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, s.n.Close()) // a process that cannot serve must not lead
	}
	return <-ended
}

// lead runs for one term of one role. This process keeps the role until lead has returned.
func (s *service) lead(ctx context.Context, l neli.Leadership) error {
	if l.Role < shards {
		return s.gate.Serve(ctx, l)
	}
	for ctx.Err() == nil { // asks the clock, even after a suspension
		log.Print("sends what is due, token ", l.Token)
		time.Sleep(time.Second)
	}
	return nil
}

func (s *service) keys(opts ...nelihttp.ForwardOption) http.Handler {
	shard := func(r *http.Request) (int, error) { return neli.Slot(r.PathValue("key"), shards), nil }
	return nelihttp.Forward(s.n, shard, s.serve, append(opts, nelihttp.WithGate(&s.gate))...)
}

// serve answers for a shard that this process leads.
func (s *service) serve(w http.ResponseWriter, _ *http.Request, in nelihttp.Term) {
	// Give the token to the database.
	fmt.Fprintf(w, "shard %d, token %d, served by %s\n", in.Role, in.Token, s.n.Config().Advertise)
}
