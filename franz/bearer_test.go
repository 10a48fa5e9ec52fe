package franz

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
)

// A client that closes ends its request for a token, and reports no failure afterwards.
func TestCloseEndsTheRequestForAToken(t *testing.T) {
	var failed atomic.Int64
	p := Provider().(kafka.LoginProvider).WithLogin(kafka.Login{Failed: func(error) { failed.Add(1) }})
	quiet := slog.New(slog.DiscardHandler)
	for name, open := range map[string]func(map[string]string) (io.Closer, *client, error){
		"producer": func(props map[string]string) (io.Closer, *client, error) {
			c, err := p.Producer(props, quiet)
			if err != nil {
				return nil, nil, err
			}
			return c, c.(*producer).client, nil
		},
		"reader": func(props map[string]string) (io.Closer, *client, error) {
			c, err := p.LogReader(props, quiet)
			if err != nil {
				return nil, nil, err
			}
			return c, c.(*reader).client, nil
		},
		"group": func(props map[string]string) (io.Closer, *client, error) {
			props["group.id"] = "g"
			c, err := p.GroupConsumer(props, quiet)
			if err != nil {
				return nil, nil, err
			}
			return c, c.(*group).client, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{})
			issuer := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // only then the end of the connection is noticed
				close(asked)
				<-r.Context().Done()
			}))
			defer issuer.Close()
			closer, c, err := open(map[string]string{"bootstrap.servers": "127.0.0.1:1", "security.protocol": "sasl_plaintext",
				"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "neli",
				"sasl.oauthbearer.client.secret": clientSecret, "sasl.oauthbearer.token.endpoint.url": issuer.URL})
			require.NoError(t, err)
			answered := make(chan error)
			go func() {
				_, err := c.tokens(context.Background())
				answered <- err
			}()
			<-asked
			require.NoError(t, closer.Close())
			require.Error(t, <-answered)
			require.Zero(t, failed.Load())
		})
	}
}
