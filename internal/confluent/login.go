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

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/goneli/neli/internal/login"
	"github.com/goneli/neli/kafka"
)

// confluentLogin is how one client logs in by tokens: with those that it is given, or with
// those that librdkafka gets by itself (sasl.oauthbearer.method=oidc), of which it takes note why there
// is none.
type confluentLogin struct {
	kafka.Login

	cancel  context.CancelFunc // nil if no tokens are given
	keeping sync.WaitGroup

	endpoint string      // whom librdkafka asks for tokens; "": nobody
	ever     atomic.Bool // a broker has answered

	refused atomic.Pointer[ck.Error] // by whom librdkafka asks for a token, since the broker has answered
}

// confluentTokens is a client as far as tokens go.
type confluentTokens interface {
	SetOAuthBearerToken(ck.OAuthBearerToken) error
	SetOAuthBearerTokenFailure(string) error
}

// keep gives the client tokens until stop. librdkafka asks for them by an event, too, which is
// left alone: who polls cannot wait for a token, and may not poll for seconds.
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
		_ = client.SetOAuthBearerTokenFailure(text) // it fails where tokens are not the way to log in
	}
	set := func(t kafka.Token) {
		err := client.SetOAuthBearerToken(ck.OAuthBearerToken{TokenValue: t.Value, Expiration: t.Expires, Principal: t.Principal, Extensions: t.Extensions})
		if err != nil {
			failed(login.Refused(errors.New("Config.Token: " + err.Error())))
		}
	}
	l.keeping.Go(func() { login.Keep(ctx, l.Token, set, failed) })
}

// stop returns when the client is not given tokens any more.
func (l *confluentLogin) stop() {
	if l.cancel != nil {
		l.cancel()
		l.keeping.Wait()
	}
}

const (
	// What librdkafka puts before each reason why there is no token.
	confluentNoTokenPrefix = "Failed to acquire SASL OAUTHBEARER token: "
	// What keep puts before a reason that will not go away: librdkafka returns only the text.
	confluentForGood = "for good: "
)

// confluentNoToken returns why there is no token, if it is that of which an error tells.
func confluentNoToken(text string) (why string, ok bool) {
	return strings.CutPrefix(text, confluentNoTokenPrefix)
}

// confluentUseless is what librdkafka says of answers that will be the same next time: of what is no
// token, of a certificate, and OAuth's own words for a client that is refused (RFC 6749, 5.2). It does not
// tell the status of the answer but in its log.
var confluentUseless = []string{confluentForGood, "Expected ", "Must supply an unexpired token", "Failed to decode JWT", "Failed to parse JSON", "Response is not JSON",
	"Failed to create JWT assertion", "certificate", "trust anchors", "invalid_", "unauthorized_client", "unsupported_grant_type", "access_denied"}

// confluentTokenRefused tells a token that is refused, or of no use, from a token service that does
// not answer.
func confluentTokenRefused(why string) bool {
	for _, useless := range confluentUseless {
		if strings.Contains(why, useless) {
			return true
		}
	}
	return false
}

// confluentRetrieved is librdkafka's line for each attempt that fails: whom it has asked, what came,
// and the status of the answer, −1 without one.
var confluentRetrieved = regexp.MustCompile(`(?s)Failed to retrieve \w+ token from "([^"]*)": (.*) \((-?\d+)\)\s*$`)

// heard notes a line of the client's log, and cuts the page in HTML out of it that came in
// place of a token.
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

// told notes an error of the client: of a token that came and is of no use it has no line in
// its log.
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

// refusal is why no token was issued since a broker has answered, nil if there is no such reason.
func (l *confluentLogin) refusal() *ck.Error { return l.refused.Load() }

// worked notes that a broker has answered.
func (l *confluentLogin) worked() {
	l.refused.Store(nil)
	l.ever.Store(true)
}

// explain adds to an error of no particular kind that there may be no token yet: librdkafka waits for
// two minutes for a token endpoint that is silent, connects to no broker meanwhile, and says nothing.
func (l *confluentLogin) explain(err error) error {
	if l.endpoint == "" || l.ever.Load() {
		return err
	}
	return fmt.Errorf("%w (no token has come from %s: look at sasl.oauthbearer.token.endpoint.url)", err, l.endpoint)
}

// confluentNamed is a text of librdkafka, of tokens with the property to look at, and without
// pages in HTML.
func confluentNamed(text string) string {
	why, ok := confluentNoToken(text)
	if !ok {
		return text
	}
	if why, given := strings.CutPrefix(why, confluentForGood); given || strings.HasPrefix(why, "Config.Token") {
		return "no token to log in with: " + why
	}
	look := login.Advice(why)
	if why = strings.Join(strings.Fields(why), " "); len(why) > 200 || strings.Contains(why, "<") {
		why = "the answer is no JSON, and no token"
	}
	return "no token to log in with: " + why + ": " + look
}
