package franz

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/goneli/neli/internal/login"
	"github.com/goneli/neli/kafka"
)

// grantAssertion is the grant of RFC 7523. The client proves its identity with a signed
// assertion, its own or another issuer's.
const grantAssertion = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// bearerSettings are the properties sasl.oauthbearer.* and https.*.
type bearerSettings struct {
	method, grant               string
	id, secret, endpoint, scope string
	extensions, subject         string
	ca, caFile                  string

	assertion, key, keyFile, template, algorithm string
	aud, iss, sub                                string
	exp, nbf                                     int64 // nbf is one more than the property, 0 if it is not set
	jti                                          bool
}

// oidc gets tokens from an endpoint.
type oidc struct {
	bearerSettings
	added  map[string]string // extensions
	client *http.Client
}

// load checks that the properties fit together. It reads their files once, to see whether they can be read.
func (b bearerSettings) load() (*oidc, error) {
	o := &oidc{bearerSettings: b}
	var faults []error
	need := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New(text))
		}
	}
	at, err := url.Parse(b.endpoint)
	need(err == nil && at.Host != "" && (at.Scheme == "http" || at.Scheme == "https"),
		"sasl.oauthbearer.token.endpoint.url: must be an address, http://… or https://…, with sasl.oauthbearer.method=oidc")
	if b.grant == grantAssertion {
		faults = append(faults, b.checkAssertion())
	} else {
		need(b.id != "", "sasl.oauthbearer.client.id: is needed with sasl.oauthbearer.method=oidc")
		need(b.secret != "", "sasl.oauthbearer.client.secret: is needed with sasl.oauthbearer.method=oidc")
	}
	o.added, err = extensions(b.extensions)
	faults = append(faults, err)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	transport.TLSClientConfig.RootCAs, err = b.authorities()
	o.client = &http.Client{Transport: transport, CheckRedirect: sameServer}
	transport.DisableKeepAlives = true // tokens are requested seldom
	if b.grant != grantAssertion {
		o.client.Transport = identified{transport, b.id, b.secret}
	}
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, err
	}
	return o, nil
}

func (b bearerSettings) authorities() (*x509.CertPool, error) {
	if b.ca == "" && (b.caFile == "" || b.caFile == "probe") {
		return nil, nil
	}
	pool := x509.NewCertPool()
	switch {
	case b.ca != "" && b.caFile != "":
		return nil, errors.New("https.ca.location, https.ca.pem: one or the other")
	case b.ca != "" && !pool.AppendCertsFromPEM([]byte(lines(b.ca))):
		return nil, errors.New("https.ca.pem: holds no certificate")
	case b.ca == "":
		if err := addFiles(pool, b.caFile); err != nil {
			return nil, fmt.Errorf("https.ca.location: %w", err)
		}
	}
	return pool, nil
}

// extensions reads name=value,…
func extensions(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	out := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || !login.Extension(name, value) {
			return nil, errors.New("sasl.oauthbearer.extensions: must be name=value,…, with names of letters, and not auth, and values in ASCII")
		}
		out[name] = value
	}
	return out, nil
}

// identified adds the client's id and secret to requests to the endpoint, as they are, since
// librdkafka does so. golang.org/x/oauth2 encodes them first (RFC 6749, 2.3.1). An endpoint that
// accepts a secret with special characters from one client would refuse it from the other.
type identified struct {
	next       http.RoundTripper
	id, secret string
}

// RoundTrip implements http.RoundTripper.
func (i identified) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.SetBasicAuth(i.id, i.secret)
	return i.next.RoundTrip(r)
}

// sameServer follows no redirect to another server, which would get the secret or the assertion.
// It is http.Client.CheckRedirect.
func sameServer(r *http.Request, via []*http.Request) error {
	switch first := via[0].URL; {
	case r.URL.Scheme != first.Scheme || r.URL.Host != first.Host:
		return http.ErrUseLastResponse // the error then names its status
	case len(via) >= 10:
		return errors.New("it redirects again and again")
	}
	return nil
}

// token requests a token from the endpoint.
func (o *oidc) token(ctx context.Context) (kafka.Token, error) {
	// The client adds the id and the secret (identified).
	config := clientcredentials.Config{TokenURL: o.endpoint, Scopes: strings.Fields(o.scope), AuthStyle: oauth2.AuthStyleInParams}
	if o.grant == grantAssertion {
		assertion, err := o.assert(time.Now())
		if err != nil {
			return kafka.Token{}, login.Refused(err)
		}
		config.EndpointParams = url.Values{"grant_type": {grantAssertion}, "assertion": {assertion}}
	}
	got, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, o.client))
	if err != nil {
		return kafka.Token{}, o.explain(ctx, err)
	}
	out := o.read(got.AccessToken, got.Expiry)
	if id, _ := got.Extra("id_token").(string); out.Expires.IsZero() && o.grant == grantAssertion && id != "" {
		out = o.read(id, time.Time{}) // some endpoints issue nothing else for an assertion
	}
	if err := login.Check(out, time.Now()); err != nil {
		return kafka.Token{}, fmt.Errorf("%w: look at sasl.oauthbearer.token.endpoint.url (%s)", err, o.shown())
	}
	if o.subject != "" && out.Principal == "" {
		return kafka.Token{}, login.Refused(fmt.Errorf("claim %s %w: look at sasl.oauthbearer.sub.claim.name", o.subject, errNoClaim))
	}
	return out, nil
}

// read finds out when a token expires and whom it identifies. A JWT says both itself.
func (o *oidc) read(value string, end time.Time) kafka.Token {
	out := kafka.Token{Value: value, Expires: end, Extensions: o.added}
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(value, claims); err == nil { // the broker verifies it
		if exp, err := claims.GetExpirationTime(); err == nil && exp != nil {
			out.Expires = exp.Time
		}
		out.Principal, _ = claims[cmp.Or(o.subject, "sub")].(string)
	}
	return out
}

// explain turns the error of an attempt into one that never shows what was sent or returned,
// except OAuth's own error code and description.
func (o *oidc) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s did not answer in time: look at sasl.oauthbearer.token.endpoint.url", o.shown())
	}
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		said := strings.TrimSpace(answer.ErrorCode + " " + answer.ErrorDescription)
		if len(said) > 200 {
			said = said[:200] + "…"
		}
		status := 0
		if answer.Response != nil {
			status = answer.Response.StatusCode
		}
		look := login.Advice(said)
		if status == http.StatusUnauthorized && said == "" {
			look = login.Advice("invalid_client")
		}
		err = fmt.Errorf("%s answers %s: %s", o.shown(), strings.TrimSpace(fmt.Sprint(status, " ", said)), look)
		if passes := status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests; passes {
			return err
		}
		return login.Refused(err)
	}
	if lost, ok := errors.AsType[*url.Error](err); ok {
		err = fmt.Errorf("%s cannot be asked: %w: %s", o.shown(), lost.Err, login.Advice(lost.Err.Error()))
		if refusedByTLS(lost.Err) {
			return login.Refused(err)
		}
		return err
	}
	return login.Refused(fmt.Errorf("%s answers without a token in JSON: look at sasl.oauthbearer.token.endpoint.url", o.shown()))
}

// shown returns the endpoint without its query, its password, and its user, which may be a token.
func (o *oidc) shown() string {
	at, err := url.Parse(o.endpoint)
	if err != nil {
		return "the token endpoint"
	}
	at.User, at.RawQuery = nil, ""
	return at.String()
}

// checkAssertion returns which properties of an assertion are missing or contradict each other.
func (b bearerSettings) checkAssertion() error {
	const by = " with sasl.oauthbearer.grant.type=" + grantAssertion
	switch {
	case b.assertion != "":
		if b.key+b.keyFile+b.template+b.aud+b.iss+b.sub != "" || b.exp+b.nbf != 0 || b.jti {
			return errors.New("sasl.oauthbearer.assertion.file: goes with no other sasl.oauthbearer.assertion.*")
		}
	case b.key == "" && b.keyFile == "":
		return errors.New("sasl.oauthbearer.assertion.private.key.file: is needed" + by + ", or …key.pem, or sasl.oauthbearer.assertion.file")
	case b.key != "" && b.keyFile != "":
		return errors.New("sasl.oauthbearer.assertion.private.key.file, …key.pem: one or the other")
	}
	_, err := b.assert(time.Now())
	return err
}

// assert makes the assertion. It reads the files each time, so that they can be replaced.
func (b bearerSettings) assert(now time.Time) (string, error) {
	if b.assertion != "" {
		read, err := os.ReadFile(b.assertion)
		if err != nil {
			return "", fmt.Errorf("sasl.oauthbearer.assertion.file: %w", err)
		}
		return strings.TrimSpace(string(read)), nil
	}
	header, claims, err := b.begin()
	if err != nil {
		return "", err
	}
	claims["iat"], claims["exp"] = now.Unix(), now.Unix()+cmp.Or(b.exp, 300)
	claims["nbf"] = now.Unix() - cmp.Or(b.nbf, 61) + 1
	for name, value := range map[string]string{"aud": b.aud, "iss": b.iss, "sub": b.sub} {
		if value != "" {
			claims[name] = value
		}
	}
	if b.jti {
		claims["jti"] = rand.Text()
	}
	method, key, err := b.signer()
	if err != nil {
		return "", err
	}
	assertion := jwt.NewWithClaims(method, claims)
	maps.Copy(header, map[string]any{"alg": method.Alg(), "typ": "JWT"})
	assertion.Header = header
	signed, err := assertion.SignedString(key)
	if err != nil {
		return "", errors.New("sasl.oauthbearer.assertion.private.key: does not fit sasl.oauthbearer.assertion.algorithm")
	}
	return signed, nil
}

// begin returns the contents of the template.
func (b bearerSettings) begin() (header map[string]any, claims jwt.MapClaims, err error) {
	var template struct{ Header, Payload map[string]any }
	if b.template != "" {
		read, err := os.ReadFile(b.template)
		if err == nil && json.Unmarshal(read, &template) != nil {
			err = errors.New("must be JSON with header and payload")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("sasl.oauthbearer.assertion.jwt.template.file: %w", err)
		}
	}
	header, claims = map[string]any{}, jwt.MapClaims{}
	maps.Copy(header, template.Header)
	maps.Copy(claims, template.Payload)
	return header, claims, nil
}

// signer returns the key and the signing method. Its errors show nothing of the key.
func (b bearerSettings) signer() (method jwt.SigningMethod, key any, err error) {
	read := []byte(lines(b.key))
	if b.key == "" {
		if read, err = os.ReadFile(b.keyFile); err != nil {
			return nil, nil, fmt.Errorf("sasl.oauthbearer.assertion.private.key.file: %w", err)
		}
	}
	if b.algorithm == "ES256" {
		method = jwt.SigningMethodES256
		key, err = jwt.ParseECPrivateKeyFromPEM(read)
	} else {
		method = jwt.SigningMethodRS256
		key, err = jwt.ParseRSAPrivateKeyFromPEM(read)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("sasl.oauthbearer.assertion.private.key: is not a key in PEM for sasl.oauthbearer.assertion.algorithm=%s, or is encrypted", cmp.Or(b.algorithm, "RS256"))
	}
	return method, key, nil
}
