package routed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/nursery"
	"github.com/goneli/neli/lab/witness"
	"github.com/goneli/neli/neligrpc"
)

// store takes a write if its token is not below the largest of its role.
type store struct {
	*testing.T
	mu    sync.Mutex
	roles map[int]term
	late  map[string]int // refused writes, by member
}

type term struct {
	token int64
	who   string
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	role, _ := strconv.Atoi(r.FormValue("role"))
	token, _ := strconv.ParseInt(r.FormValue("token"), 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch of := s.roles[role]; {
	case token < of.token:
		s.late[r.FormValue("who")]++
		w.WriteHeader(http.StatusConflict)
	case token == of.token && of.who != r.FormValue("who"):
		s.Errorf("role %d: %s and %s have token %d", role, of.who, r.FormValue("who"), token)
	default:
		s.roles[role] = term{token, r.FormValue("who")}
	}
}

// fleet is three members, and what became of the requests to them.
type fleet struct {
	*testing.T
	nursery *nursery.Nursery
	params  params
	conn    *grpc.ClientConn
	client  *http.Client
	born    int

	mu      sync.Mutex
	up      []*server
	kills   []witness.Span
	counts  map[string]int
	took    map[string][]time.Duration // over HTTP
	pending sync.WaitGroup
}

type server struct {
	*child.Process
	at   string
	told chan told
	away witness.Span // its last disturbance
}

func (f *fleet) start() {
	f.Helper()
	f.born++
	p := f.params
	p.Name = fmt.Sprint("m", f.born)
	s := &server{told: make(chan told, 1), away: witness.Span{From: witness.Never}}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envMember+"=1")
	var err error
	s.Process, err = child.New(cmd, p, child.Options{Nursery: f.nursery, Dir: f.TempDir(), Name: p.Name, Hear: func(line []byte) error {
		var t told
		err := json.Unmarshal(line, &t)
		s.told <- t
		return err
	}})
	require.NoError(f, err)
	s.at = (<-s.told).At
	f.mu.Lock()
	f.up = append(f.up, s)
	f.mu.Unlock()
}

// disturb takes a member out of those to which requests go.
func (f *fleet) disturb() *server {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.up[0]
	s.away = witness.Span{From: witness.Now(), To: witness.Never}
	f.up = slices.Delete(f.up, 0, 1)
	return s
}

func (f *fleet) kill() {
	s := f.disturb()
	f.mu.Lock()
	f.kills = append(f.kills, s.away)
	f.mu.Unlock()
	s.Kill()
	f.mu.Lock()
	f.kills[len(f.kills)-1].To = witness.Now()
	f.mu.Unlock()
}

// ask sends one request for a role, and notes what became of it.
func (f *fleet) ask(role int, overHTTP bool) (became string) {
	f.mu.Lock()
	by := f.up[rand.IntN(len(f.up))]
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(f.Context(), 30*time.Second)
	defer cancel()
	at := witness.Now()
	if overHTTP {
		became = f.get(ctx, by, role)
	} else {
		became = f.call(ctx, role)
	}
	now := witness.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if kind, why, broken := strings.Cut(became, ": "); broken {
		// It may fail if it was at work in a process that was killed, or came in by one that was disturbed.
		spared := overHTTP && at < by.away.To && now > by.away.From
		for _, k := range f.kills {
			spared = spared || at-200*time.Millisecond < k.To && now > k.From
		}
		if !spared {
			f.Errorf("role %d, from %v for %v: %s: %s", role, at, now-at, kind, why)
		}
		became = kind
	}
	if strings.HasPrefix(became, "served") && overHTTP {
		f.took[became] = append(f.took[became], now-at)
	}
	f.counts[became]++
	return became
}

func (f *fleet) get(ctx context.Context, by *server, role int) string {
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s/%d", by.at, role), strings.NewReader("body"))
	resp, err := f.client.Do(r)
	if err != nil {
		return "HTTP broken: " + err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err == nil && resp.StatusCode == http.StatusOK && string(body) == by.Name:
		return "served here"
	case err == nil && resp.StatusCode == http.StatusOK:
		return "served a hop away"
	case err == nil && resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		return "503"
	}
	return fmt.Sprintf("HTTP broken: %s %s %v", resp.Status, body, err)
}

func (f *fleet) call(ctx context.Context, role int) string {
	_, err := grpc_health_v1.NewHealthClient(f.conn).Check(neligrpc.WithRole(ctx, role), &grpc_health_v1.HealthCheckRequest{})
	switch s := status.Convert(err); {
	case err == nil:
		return "served over gRPC"
	case s.Code() == codes.Unavailable && len(s.Details()) == 1, s.Code() == codes.Aborted:
		return "Unavailable"
	}
	return "gRPC broken: " + err.Error()
}

// flood sends requests, 200 a second, until ctx ends.
func (f *fleet) flood(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		<-tick.C
		f.pending.Go(func() { f.ask(rand.IntN(roles), i%2 == 0) })
	}
}

// calm waits until all roles have had the same leaders for a second, and sends a request for each: none may fail.
func (f *fleet) calm(n *neli.Neli, when string) {
	f.Helper()
	leaders := func() (held int, all string) {
		for _, s := range n.Standings() {
			if s.Status == neli.StatusHeld {
				held += len(slices.Collect(s.Roles()))
				all += fmt.Sprint(s.Holder.Member, s.Holder.Token, slices.Collect(s.Roles()))
			}
		}
		return held, all
	}
	since, was := witness.Now(), ""
	for began := since; ; <-time.After(50 * time.Millisecond) {
		held, all := leaders()
		if now := witness.Now(); held < roles || all != was {
			since, was = now, all
		} else if now-since > time.Second {
			break
		}
		require.Less(f, witness.Now()-began, time.Minute, "%s: the roles do not come to rest", when)
	}
	for role := range roles {
		if became := f.ask(role, role%2 == 0); !strings.HasPrefix(became, "served") {
			f.Errorf("%s, role %d: %s", when, role, became)
		}
	}
}

// transfer moves ten roles, one after the other. The observer knows of each move within a round trip.
func (f *fleet) transfer(n *neli.Neli) {
	from, to := f.up[0], f.up[1]
	for role, moved := 0, 0; role < roles && moved < 10; role++ {
		if h, ok := n.Holder(role); !ok || h.Name != from.Name {
			continue
		}
		moved++
		require.NoError(f, from.Say(command{Role: role, To: to.Name}))
		failed := (<-from.told).Error
		f.mu.Lock()
		f.counts["Transfer: "+strings.TrimSpace(failed[strings.LastIndex(failed, ":")+1:])]++
		f.mu.Unlock()
		if failed != "<nil>" { // a process that did not run for a while: see Transfer
			continue
		}
		<-time.After(100 * time.Millisecond) // until all have read of it
		for overHTTP := range 2 {
			if became := f.ask(role, overHTTP == 0); !strings.HasPrefix(became, "served") {
				f.Errorf("role %d after its Transfer: %s", role, became)
			}
		}
	}
}

// No role is served by two at an instant. A failed request is a clean 503 or Unavailable unless its process was killed.
// Once a planned move is over, no request fails.
func TestRequestsFindTheLeader(t *testing.T) {
	length := 10 * time.Second
	if os.Getenv("NELI_MINUTE") != "" {
		length = time.Minute
	}
	cluster := kafkatest.Run(t, kafkatest.Options{})
	children, err := nursery.New("")
	require.NoError(t, err)
	defer children.Close()
	kept := &store{T: t, roles: map[int]term{}, late: map[string]int{}}
	db := httptest.NewServer(kept)
	defer db.Close()
	f := &fleet{T: t, nursery: children, params: params{Bootstrap: cluster.Bootstrap(), Store: db.URL}, counts: map[string]int{},
		took: map[string][]time.Duration{}, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	defer f.client.CloseIdleConnections()
	for range 3 {
		f.start()
	}
	cfg := f.params.config()
	cfg.Observer = true
	n, err := neli.New(cfg)
	require.NoError(t, err)
	defer n.Close()
	f.conn, err = neligrpc.NewClient(n, func(u *url.URL) string { return overGRPC(u) }, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer f.conn.Close()
	f.calm(n, "at first")

	ctx, stop := context.WithCancel(t.Context())
	f.pending.Go(func() { f.flood(ctx) })
	suspended := map[string]int{}
	for began := witness.Now(); witness.Now()-began < length; {
		f.transfer(n)
		closing := f.disturb()
		require.NoError(t, closing.Say(command{}))
		require.Equal(t, "<nil>", (<-closing.told).Error)
		f.calm(n, "after Close")
		f.start()

		f.kill()
		f.start()

		<-time.After(timeout)
		stopped := f.disturb()
		suspended[stopped.Name]++
		_, err := stopped.Suspend()
		require.NoError(t, err)
		<-time.After(2 * timeout)
		_, err = stopped.Wake()
		require.NoError(t, err)
		f.mu.Lock()
		stopped.away.To = witness.Now()
		f.up = append(f.up, stopped)
		f.mu.Unlock()
	}
	stop()
	f.pending.Wait()
	f.calm(n, "at the end")
	for who, times := range kept.late {
		// A suspension can catch requests between the check and the write: a few, at 200 a second.
		require.LessOrEqual(t, times, 10*suspended[who], "late writes by %s, which was suspended %d times", who, suspended[who])
	}
	t.Log(f.counts, "late writes, refused by the store:", kept.late)
	for what, took := range f.took {
		slices.SortFunc(took, cmp.Compare[time.Duration])
		t.Log(what, "median", took[len(took)/2], "99 %", took[len(took)*99/100])
	}
}
