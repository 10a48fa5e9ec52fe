package login

import (
	"context"
	"strings"
	"time"

	"github.com/goneli/neli/kafka"
)

const (
	// leastPause is the shortest pause between two calls of get.
	leastPause = time.Second
	// mostPause is the longest. A token expires by the wall clock. A timer stands still while the
	// machine is suspended, and does not notice that the wall clock was set.
	mostPause = 10 * time.Second
)

// Keep gives a client one token after another, each before the previous one expires, until ctx is
// done. get is kafka.Login.Token. failed is called with the reason whenever there is no token. set is
// called once with each token, and once more with the same one after failed.
func Keep(ctx context.Context, get func(context.Context) (kafka.Token, error), set func(kafka.Token), failed func(error)) {
	var had kafka.Token
	var renew time.Time // when to ask get for a token other than had
	for {
		token, err := get(ctx)
		wait := leastPause
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failed(err)
			had = kafka.Token{}
		default:
			if now := time.Now().Round(0); token.Value != had.Value || !token.Expires.Equal(had.Expires) {
				set(token)
				had, renew = token, now.Add(Soon(token, now))
			}
			wait = min(max(leastPause, time.Until(renew)), mostPause)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// advice names the properties to look at, by words of a token endpoint, of the connection to it, or of a broker.
var advice = []struct{ said, look string }{
	{"certificate", "https.ca.location (or https.ca.pem)"},
	{"trust anchors", "https.ca.location (or https.ca.pem)"}, // the file is missing
	{"invalid_client", "sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret"},
	{"unauthorized_client", "sasl.oauthbearer.client.id and sasl.oauthbearer.grant.type"},
	{"invalid_scope", "sasl.oauthbearer.scope"},
	{"invalid_grant", "sasl.oauthbearer.assertion.*"},
	{"unsupported_grant_type", "sasl.oauthbearer.grant.type"},
	{"assertion", "sasl.oauthbearer.assertion.*"},
	{`"exp"`, "sasl.oauthbearer.token.endpoint.url: its tokens have no expiry"},
	{"unexpired", "sasl.oauthbearer.token.endpoint.url: its tokens have expired when they arrive; compare the clocks"},
}

// Advice returns which property to look at.
func Advice(said string) string {
	said = strings.ToLower(said)
	for _, a := range advice {
		if strings.Contains(said, a.said) {
			return "look at " + a.look
		}
	}
	return "look at sasl.oauthbearer.token.endpoint.url"
}
