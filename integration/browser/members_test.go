package browser

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelihttp"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// member is a process with a page.
type member struct {
	*neli.Neli
	page *httptest.Server
	url  string
}

// join starts a member that contends.
func join(t *testing.T, broker *nelitest.Broker, name string, change func(*neli.Config), opts ...nelihttp.Option) *member {
	t.Helper()
	cfg := neli.Config{LeaderGroupID: "invoices", Name: name, HeartbeatTimeout: time.Second, Provider: broker.Provider(name)}
	if change != nil {
		change(&cfg)
	}
	n, err := neli.New(cfg)
	require.NoError(t, err)
	work := time.NewTicker(5 * time.Millisecond)
	t.Cleanup(work.Stop) // after Close, which waits for the task
	_, err = n.Background(func() { <-work.C })
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/neli/", http.StripPrefix("/neli", nelihttp.Handler(n, opts...)))
	m := &member{Neli: n, page: httptest.NewServer(mux)}
	m.url = m.page.URL + "/neli/"
	t.Cleanup(func() {
		require.NoError(t, n.Close()) // streams end with it
		m.page.Close()
	})
	return m
}

func (m *member) leads(t *testing.T) {
	t.Helper()
	require.Eventually(t, m.IsLeader, patience, 5*time.Millisecond)
}
