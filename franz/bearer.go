package franz

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"

	"github.com/goneli/neli/internal/login"
	"github.com/goneli/neli/kafka"
)

// bearer is the mechanism OAUTHBEARER. As long as its client lives, it replaces tokens before
// they expire. franz-go asks for a token for each connection, and again when the broker says that
// the session ends.
type bearer struct {
	ctx    context.Context // the client's
	tokens func(context.Context) (kafka.Token, error)
	keep   sync.Once
	latest atomic.Pointer[kafka.Token]
}

// signingIn returns the options with which a client whose context is ctx logs in with tokens.
func (c *client) signingIn(ctx context.Context) []kgo.Opt {
	if c.tokens == nil {
		return nil
	}
	return []kgo.Opt{kgo.SASL(bearerMechanism{&bearer{ctx: ctx, tokens: c.tokens}})}
}

// endTokens ends the request for a token, once the client needs none any more.
func (c *client) endTokens() {
	if c.source != nil {
		c.source.Close(context.Background()) // the request ends with its context
	}
}

// Name implements sasl.Mechanism.
func (*bearer) Name() string { return "OAUTHBEARER" }

// Authenticate implements sasl.Mechanism. It waits for a token only if it has no valid one: a
// slow token service must not delay a connection.
func (b *bearer) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	b.keep.Do(func() {
		go login.Keep(b.ctx, b.tokens, func(t kafka.Token) { b.latest.Store(&t) }, func(error) {})
	})
	token := b.latest.Load()
	if token == nil || !token.Expires.After(time.Now()) {
		t, err := b.tokens(ctx)
		if err != nil {
			return nil, nil, err
		}
		token = &t
	}
	return oauth.Auth{Token: token.Value, Extensions: token.Extensions}.AsMechanism().Authenticate(ctx, host)
}

// tokenMechanism returns a mechanism with no more than OAUTHBEARER's name, or nil without a source of tokens.
func tokenMechanism(tokens func(context.Context) (kafka.Token, error)) []sasl.Mechanism {
	if tokens == nil {
		return nil
	}
	return []sasl.Mechanism{&bearer{}}
}

// bearerMechanism adds the reason when a broker refuses a token.
type bearerMechanism struct{ sasl.Mechanism }

func (m bearerMechanism) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	session, first, err := m.Mechanism.Authenticate(ctx, host)
	if err != nil {
		return nil, nil, err
	}
	return bearerSession{session}, first, nil
}

type bearerSession struct{ sasl.Session }

// Challenge implements sasl.Session. A broker sends no data if it accepts a token. If it refuses
// one, it sends JSON with the reason (RFC 7628, 3.2.3).
func (s bearerSession) Challenge(said []byte) (bool, []byte, error) {
	if len(said) > 0 {
		var why struct{ Status string }
		if json.Unmarshal(said, &why) != nil || why.Status == "" || len(why.Status) > 100 {
			why.Status = "without a reason"
		}
		return false, nil, login.Refused(fmt.Errorf("the broker refuses the token (%s)", why.Status))
	}
	return s.Session.Challenge(said)
}

var errNoClaim = errors.New("is missing in the token")
