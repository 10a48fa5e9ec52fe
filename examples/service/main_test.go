package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelihttp"
	"github.com/goneli/neli/nelitest"
)

// start starts a service without its server.
func start(t *testing.T, broker *nelitest.Broker, name string) (s *service, end func()) {
	n, err := neli.New(neli.Config{Provider: broker.Provider(name), LeaderGroupID: "service", Name: name, Advertise: name + ":80", Roles: shards + 1})
	require.NoError(t, err)
	s = &service{n: n}
	ctx, end := context.WithCancel(t.Context())
	go n.Lead(ctx, s.lead)
	t.Cleanup(func() { n.Close() })
	return s, end
}

// sent is a transport that answers with the URL of the request.
type sent struct{}

func (sent) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{"Url": {r.URL.String()}}, Body: http.NoBody}, nil
}

// get asks a service for a key of a shard, and returns the key.
func (s *service) get(w http.ResponseWriter, shard int) (key string) {
	for i := 0; key == "" || neli.Slot(key, shards) != shard; i++ {
		key = fmt.Sprint("key", i)
	}
	r := httptest.NewRequest(http.MethodGet, "/keys/"+key+"?q=1", nil)
	r.SetPathValue("key", key)
	s.keys(nelihttp.WithTargets(func(*url.URL) bool { return true }), nelihttp.WithTransport(sent{})).ServeHTTP(w, r)
	return key
}

// ask requests a key of each shard. It returns how many were served, and where the others were sent, by shard.
func (s *service) ask(t *testing.T) (served int, elsewhere map[int]string) {
	elsewhere = map[int]string{}
	for shard := range shards {
		w := httptest.NewRecorder()
		key := s.get(w, shard)
		switch w.Code {
		case http.StatusOK:
			served++
		case http.StatusAccepted:
			elsewhere[shard] = w.Header().Get("Url")
			require.Contains(t, elsewhere[shard], "/keys/"+key+"?q=1")
		default:
			require.Equal(t, http.StatusServiceUnavailable, w.Code)
		}
	}
	return served, elsewhere
}

// slow is a client that takes the answer only when it may.
type slow struct {
	*httptest.ResponseRecorder
	may chan struct{}
}

func (s slow) Write(b []byte) (int, error) {
	<-s.may
	return s.ResponseRecorder.Write(b)
}

func TestASuspendedProcessServesNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := nelitest.NewBroker(nelitest.Options{})
		a, _ := start(t, broker, "a")
		b, _ := start(t, broker, "b")
		time.Sleep(time.Minute)
		hers, others := a.ask(t)
		his, _ := b.ask(t)
		require.InDelta(t, shards/2, hers, 2)
		require.Equal(t, shards, hers+his)
		require.Len(t, others, his)
		for _, url := range others {
			require.Regexp(t, `^http://b:80/keys/`, url)
		}

		broker.Freeze("a") // its program runs before its library does
		time.Sleep(20 * time.Second)
		hers, _ = a.ask(t)
		his, _ = b.ask(t)
		require.Zero(t, hers)
		require.Equal(t, shards, his)
		broker.Resume("a")
	})
}

func TestAShardMovesAfterItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := nelitest.NewBroker(nelitest.Options{})
		a, end := start(t, broker, "a")
		b, _ := start(t, broker, "b")
		time.Sleep(time.Minute)
		_, elsewhere := a.ask(t)
		busy := 0
		for elsewhere[busy] != "" {
			busy++
		}
		client := slow{httptest.NewRecorder(), make(chan struct{})}
		go a.get(client, busy)
		synctest.Wait()
		end()
		time.Sleep(2 * time.Second)
		served, _ := a.ask(t)
		require.Zero(t, served)
		served, elsewhere = b.ask(t)
		require.Equal(t, shards-1, served)
		require.Regexp(t, `^http://a:80/`, elsewhere[busy])
		close(client.may)
		time.Sleep(time.Second)
		served, _ = b.ask(t)
		require.Equal(t, shards, served)
		require.Contains(t, client.Body.String(), "served by a:80")
	})
}
