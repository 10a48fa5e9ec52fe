//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/goneli/neli/internal/login"
	"github.com/goneli/neli/kafka"
)

// confluentLogin is how one client logs in with tokens. Either the library gives it tokens, or
// librdkafka fetches them itself (sasl.oauthbearer.method=oidc). In the latter case
// confluentLogin notes why it gets none.
type confluentLogin struct {
	kafka.Login

	cancel  context.CancelFunc // nil if the library gives no tokens
	keeping sync.WaitGroup

	endpoint string      // where librdkafka fetches tokens; "": it does not
	ever     atomic.Bool // a broker has answered since the start

	refused atomic.Pointer[ck.Error] // why librdkafka was refused a token since a broker last answered
}

// confluentTokens is the part of a client that takes tokens.
type confluentTokens interface {
	SetOAuthBearerToken(ck.OAuthBearerToken) error
	SetOAuthBearerTokenFailure(string) error
}

// keep gives the client tokens until stop. librdkafka also asks for them with an event, which is
// ignored: a goroutine that polls cannot wait for a token, and it may pause for seconds.
func (l *confluentLogin) keep(client confluentTokens) {
	if l.Token == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	failed := func(err error) {
		text := err.Error()
		if errors.Is(err, kafka.ErrAuthentication) {
			text = confluentForGood + text
		}
		_ = client.SetOAuthBearerTokenFailure(text) // it fails if the client does not log in with tokens
	}
	set := func(t kafka.Token) {
		if last := time.Unix(1<<33, 0); t.Expires.After(last) { // the client has nanoseconds in 64 bits
			t.Expires = last
		}
		err := client.SetOAuthBearerToken(ck.OAuthBearerToken{TokenValue: t.Value, Expiration: t.Expires, Principal: t.Principal, Extensions: t.Extensions})
		if err != nil {
			failed(login.Refused(errors.New("Config.LoginToken: " + err.Error())))
		}
	}
	l.keeping.Go(func() { login.Keep(ctx, l.Token, set, failed) })
}

// stop returns when the client gets no more tokens.
func (l *confluentLogin) stop() {
	if l.cancel != nil {
		l.cancel()
		l.keeping.Wait()
	}
}

const (
	// librdkafka's prefix to each reason why there is no token
	confluentNoTokenPrefix = "Failed to acquire SASL OAUTHBEARER token: "
	// keep's prefix to a final reason, since librdkafka returns only the text
	confluentForGood = "for good: "
)

// confluentNoToken returns why there is no token, if that is what an error says.
func confluentNoToken(text string) (why string, ok bool) {
	return strings.CutPrefix(text, confluentNoTokenPrefix)
}

// confluentUseless are librdkafka's words for answers that will be the same next time: an answer
// without a token, a bad certificate, and OAuth's own words for a client that is refused (RFC
// 6749, 5.2). The status of an answer is only in librdkafka's log.
var confluentUseless = []string{confluentForGood, "Expected ", "Must supply an unexpired token", "Failed to decode JWT", "Failed to parse JSON", "Response is not JSON",
	"Failed to create JWT assertion", "certificate", "trust anchors", "invalid_", "unauthorized_client", "unsupported_grant_type", "access_denied"}

// confluentTokenRefused reports whether a token was refused, or is useless, rather than that the
// token service does not answer.
func confluentTokenRefused(why string) bool {
	for _, useless := range confluentUseless {
		if strings.Contains(why, useless) {
			return true
		}
	}
	return false
}

// confluentRetrieved matches librdkafka's log line for a failed attempt: the endpoint, the
// answer, and its status, −1 if there is none.
var confluentRetrieved = regexp.MustCompile(`(?s)Failed to retrieve \w+ token from "([^"]*)": (.*) \((-?\d+)\)\s*$`)

// heard notes a line of the client's log. If the answer was an HTML page, it cuts that out of the line.
func (l *confluentLogin) heard(ev *ck.LogEvent) {
	m := confluentRetrieved.FindStringSubmatch(ev.Message)
	if m == nil {
		return
	}
	l.failed(m[2])
	ev.Message = confluentNamed(confluentNoTokenPrefix + m[2])
	if status, _ := strconv.Atoi(m[3]); confluentTokenRefused(m[2]) || status >= 400 && status < 500 && status != 408 && status != 425 && status != 429 {
		refused := ck.NewError(ck.ErrSaslAuthenticationFailed, confluentNoTokenPrefix+m[2], false)
		l.refused.Store(&refused)
	}
}

// told notes an error of the client. If a token came but is useless, that is not in the client's log.
func (l *confluentLogin) told(err ck.Error) {
	why, ok := confluentNoToken(err.String())
	if ok && (strings.HasPrefix(why, "Expected ") || strings.HasPrefix(why, "Must ") || strings.HasPrefix(why, "Failed to ") && !strings.HasPrefix(why, "Failed to connect")) {
		l.failed(why)
	}
}

func (l *confluentLogin) failed(why string) {
	if l.Token == nil && l.Failed != nil {
		l.Failed(errors.New(confluentNamed(confluentNoTokenPrefix + why)))
	}
}

// refusal returns why a token was refused since a broker last answered, or nil.
func (l *confluentLogin) refusal() *ck.Error { return l.refused.Load() }

// worked notes that a broker has answered.
func (l *confluentLogin) worked() {
	l.refused.Store(nil)
	l.ever.Store(true)
}

// explain adds to an error of no particular kind that there may be no token yet. If a token
// endpoint does not answer, librdkafka waits for two minutes, connects to no broker, and logs
// nothing.
func (l *confluentLogin) explain(err error) error {
	if l.endpoint == "" || l.ever.Load() {
		return err
	}
	return fmt.Errorf("%w (no token has come from %s: look at sasl.oauthbearer.token.endpoint.url)", err, l.endpoint)
}

// confluentNamed returns a text of librdkafka. If it is about a token, it names the property to
// look at, and leaves out HTML pages.
func confluentNamed(text string) string {
	why, ok := confluentNoToken(text)
	if !ok {
		return text
	}
	if why, given := strings.CutPrefix(why, confluentForGood); given || strings.HasPrefix(why, "Config.LoginToken") {
		return "no token to log in with: " + why
	}
	look := login.Advice(why)
	if why = strings.Join(strings.Fields(why), " "); len(why) > 200 || strings.Contains(why, "<") {
		why = "the answer is neither JSON nor a token"
	}
	return "no token to log in with: " + why + ": " + look
}
