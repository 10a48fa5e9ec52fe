package browser

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelihttp"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// member is a process with a page.
type member struct {
	*neli.Neli
	page *httptest.Server
	url  string
}

// join starts a member that contends. T is long, so that no leader lapses while the browser has all cores.
func join(t *testing.T, broker *nelitest.Broker, name string, change func(*neli.Config), opts ...nelihttp.Option) *member {
	t.Helper()
	cfg := neli.Config{LeaderGroupID: "invoices", Name: name, HeartbeatTimeout: 5 * time.Second, Provider: broker.Provider(name)}
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

// transfer hands a role over to a member that is up. On a busy machine that may answer too late, which changes nothing.
func (m *member) transfer(t *testing.T, role int, to string) {
	t.Helper()
	require.Eventually(t, func() bool {
		err := m.Transfer(t.Context(), role, to)
		if !errors.Is(err, neli.ErrNoMember) && !errors.Is(err, neli.ErrNoAnswer) {
			assert.NoError(t, err)
			return true
		}
		return false
	}, patience, 20*time.Millisecond)
}

func (m *member) leads(t *testing.T) {
	t.Helper()
	require.Eventually(t, m.IsLeader, patience, 5*time.Millisecond)
}
