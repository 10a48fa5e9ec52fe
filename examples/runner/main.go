// Command runner runs jobs that are requested over HTTP, on one process at a time. Send a request to any
// process: the leader runs the job, and the others redirect to the leader.
//
//	go run ./runner -listen localhost:8001 &
//	go run ./runner -listen localhost:8002 &
//	curl -L -X POST localhost:8001/jobs/invoices?steps=10
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/goneli/neli"
)

func main() {
	var (
		bootstrap = flag.String("bootstrap", "localhost:9092", "Kafka brokers, host:port,…")
		group     = flag.String("group", "runner", "the group whose members contend")
		listen    = flag.String("listen", "localhost:0", "address to serve at, with a host: other processes redirect to it")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	cfg := neli.Config{KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": *bootstrap}, LeaderGroupID: *group}
	if err := run(ctx, cfg, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "runner:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cfg neli.Config, listen string) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	defer l.Close()
	if l.Addr().(*net.TCPAddr).IP.IsUnspecified() {
		return fmt.Errorf("-listen %s: must name a host, since other processes redirect to it", listen)
	}
	cfg.Advertise = "http://" + l.Addr().String() // the others redirect to this URL
	n, err := neli.New(cfg)
	if err != nil {
		return err
	}
	r := &runner{n: n, log: log.New(os.Stdout, "", log.Ltime)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /jobs/{job}", r.serve)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	r.log.Print("listens on ", cfg.Advertise)
	led := n.Lead(ctx, r.lead)
	err = errors.Join(led, n.Close(), server.Close())
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// runner runs one job at a time.
type runner struct {
	n   *neli.Neli
	log *log.Logger

	mu   sync.Mutex
	term *term // nil: this process does not run jobs
}

// term is a term in which jobs may run.
type term struct {
	ctx  context.Context
	l    neli.Leadership
	busy sync.Mutex // held while a job runs
}

// lead is one term. It returns when the running job has ended.
func (r *runner) lead(ctx context.Context, l neli.Leadership) error {
	t := &term{ctx: ctx, l: l}
	r.set(t)
	r.log.Printf("leads, with token %d", l.Token)
	<-ctx.Done()
	r.set(nil)
	t.busy.Lock() // never unlocked, so that no further job begins in this term
	r.log.Printf("no longer leads (%v)", context.Cause(ctx))
	return nil
}

func (r *runner) set(t *term) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.term = t
}

func (r *runner) serve(w http.ResponseWriter, q *http.Request) {
	steps, err := strconv.Atoi(q.FormValue("steps"))
	if err != nil || steps < 1 {
		http.Error(w, "steps: a number from 1", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	t := r.term
	r.mu.Unlock()
	if t == nil || !t.l.Valid() {
		r.redirect(w, q)
		return
	}
	if !t.busy.TryLock() {
		http.Error(w, "another job is running", http.StatusConflict)
		return
	}
	defer t.busy.Unlock()
	done := r.job(q.Context(), t, q.PathValue("job"), steps)
	if done < steps {
		http.Error(w, fmt.Sprintf("%s: cut off after step %d of %d", q.PathValue("job"), done, steps), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintf(w, "%s: %d steps with token %d\n", q.PathValue("job"), done, t.l.Token)
}

// job checks the lease before each step, and returns the number of steps done. A step that a former leader
// must never do, however late, has to carry the token.
func (r *runner) job(client context.Context, t *term, job string, steps int) (done int) {
	for done < steps && t.l.Valid() && client.Err() == nil {
		done++
		r.log.Printf("%s: step %d with token %d", job, done, t.l.Token)
		time.Sleep(100 * time.Millisecond)
	}
	return done
}

// redirect redirects a request to the leader that this process knows.
func (r *runner) redirect(w http.ResponseWriter, q *http.Request) {
	h, ok := r.n.Holder(0)
	if !ok || h.Advertise == "" || h.Advertise == r.n.Config().Advertise {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "no leader is known at present", http.StatusServiceUnavailable)
		return
	}
	http.Redirect(w, q, h.Advertise+q.URL.RequestURI(), http.StatusTemporaryRedirect)
}
