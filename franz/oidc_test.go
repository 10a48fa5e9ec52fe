package franz

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
)

const clientSecret = "cl1ent+s3cret"

func answer(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}

// issued returns a token that nobody verifies.
func issued(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte("key"))
	require.NoError(t, err)
	return signed
}

// reads returns the source of tokens that properties describe.
func reads(t *testing.T, props map[string]string) (*oidc, error) {
	t.Helper()
	all := map[string]string{"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc",
		"sasl.oauthbearer.client.id": "neli", "sasl.oauthbearer.client.secret": clientSecret}
	for name, value := range props {
		all[name] = value
	}
	s, err := parse(forProducer, all)
	if err != nil {
		return nil, err
	}
	return s.security.oidc, nil
}

func TestClientCredentials(t *testing.T) {
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	token := issued(t, jwt.MapClaims{"sub": "service", "exp": end.Unix()})
	issuer := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, ok := r.BasicAuth()
		if !ok || id != "neli" || secret != clientSecret || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "read write" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer"}`, token)
	}))
	defer issuer.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw}), 0o600))
	o, err := reads(t, map[string]string{"sasl.oauthbearer.token.endpoint.url": issuer.URL, "sasl.oauthbearer.scope": "read write",
		"sasl.oauthbearer.extensions": "logicalCluster=lkc-1,identityPoolId=pool", "https.ca.location": file})
	require.NoError(t, err)
	got, err := o.token(t.Context())
	require.NoError(t, err)
	require.Equal(t, kafka.Token{Value: token, Expires: end, Principal: "service",
		Extensions: map[string]string{"logicalCluster": "lkc-1", "identityPoolId": "pool"}}, got)
}

// In the assertion, claims of properties take precedence over those of the template. The assertion is signed.
func TestAssertion(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	private := func(key any) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	keyFile := file("key.pem", private(rsaKey))
	var public any = rsaKey.Public()
	var got *jwt.Token
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		got, err = jwt.Parse(r.FormValue("assertion"), func(*jwt.Token) (any, error) { return public, nil })
		if _, _, basic := r.BasicAuth(); err != nil || basic || r.FormValue("grant_type") != grantAssertion {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_grant"})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"opaque","id_token":%q}`, issued(t, jwt.MapClaims{"sub": "service", "exp": time.Now().Add(time.Hour).Unix()}))
	}))
	defer issuer.Close()
	base := func(more map[string]string) map[string]string {
		more["sasl.oauthbearer.token.endpoint.url"], more["sasl.oauthbearer.grant.type"] = issuer.URL, grantAssertion
		return more
	}
	o, err := reads(t, base(map[string]string{
		"sasl.oauthbearer.assertion.private.key.file":  keyFile,
		"sasl.oauthbearer.assertion.jwt.template.file": file("template", []byte(`{"header":{"kid":"k1"},"payload":{"aud":"other","team":"payments"}}`)),
		"sasl.oauthbearer.assertion.claim.aud":         issuer.URL, "sasl.oauthbearer.assertion.claim.iss": "me", "sasl.oauthbearer.assertion.claim.sub": "service",
		"sasl.oauthbearer.assertion.claim.exp.seconds": "60", "sasl.oauthbearer.assertion.claim.nbf.seconds": "0", "sasl.oauthbearer.assertion.claim.jti.include": "true",
	}))
	require.NoError(t, err)
	token, err := o.token(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, "opaque", token.Value, "took the opaque token, which has no expiry")
	require.Equal(t, "k1", got.Header["kid"])
	require.Equal(t, "RS256", got.Header["alg"])
	claims := got.Claims.(jwt.MapClaims)
	require.Equal(t, issuer.URL, claims["aud"])
	require.Equal(t, "payments", claims["team"])
	require.Equal(t, "me", claims["iss"])
	require.Equal(t, claims["iat"], claims["nbf"])
	require.Equal(t, 60.0, claims["exp"].(float64)-claims["iat"].(float64))
	require.NotEmpty(t, claims["jti"])

	public = ecKey.Public()
	o, err = reads(t, base(map[string]string{"sasl.oauthbearer.assertion.private.key.pem": string(private(ecKey)), "sasl.oauthbearer.assertion.algorithm": "ES256"}))
	require.NoError(t, err)
	_, err = o.token(t.Context())
	require.NoError(t, err)
	claims = got.Claims.(jwt.MapClaims)
	require.Equal(t, 60.0, claims["iat"].(float64)-claims["nbf"].(float64))
	require.Equal(t, 300.0, claims["exp"].(float64)-claims["iat"].(float64))

	// Another issuer's assertion, which may be replaced.
	assertion := file("assertion", []byte("not.an.assertion\n"))
	o, err = reads(t, base(map[string]string{"sasl.oauthbearer.assertion.file": assertion}))
	require.NoError(t, err)
	_, err = o.token(t.Context())
	require.ErrorContains(t, err, "look at sasl.oauthbearer.assertion.*")
	require.ErrorIs(t, err, kafka.ErrAuthentication)
	again, err := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{"sub": "service"}).SignedString(ecKey)
	require.NoError(t, err)
	file("assertion", []byte(again))
	_, err = o.token(t.Context())
	require.NoError(t, err)
}

// For each wrong answer, the error is one sentence that names a property. It shows nothing that was sent or returned.
func TestTokenEndpoints(t *testing.T) {
	const page = `<html>please log in, s3cret-page</html>`
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		says   string
		passes bool
	}{
		"refused":        {answer(401, "application/json", `{"error":"invalid_client"}`), "answers 401 invalid_client: look at sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret", false},
		"without words":  {answer(401, "text/plain", ""), "look at sasl.oauthbearer.client.id", false},
		"scope":          {answer(400, "application/json", `{"error":"invalid_scope","error_description":"none such"}`), "answers 400 invalid_scope none such: look at sasl.oauthbearer.scope", false},
		"HTML":           {answer(200, "text/html", page), "answers without a token in JSON: look at sasl.oauthbearer.token.endpoint.url", false},
		"HTML, no page":  {answer(404, "text/html", page), "answers 404", false},
		"overloaded":     {answer(503, "text/html", page), "answers 503", true},
		"no expiry":      {answer(200, "application/json", `{"access_token":"s3cret-token"}`), "has no expiry", false},
		"in the past":    {answer(200, "application/json", `{"access_token":"`+issued(t, jwt.MapClaims{"exp": 1700000000})+`"}`), "expired", false},
		"no subject":     {answer(200, "application/json", `{"expires_in":60,"access_token":"s3cret-token"}`), "look at sasl.oauthbearer.sub.claim.name", false},
		"empty":          {answer(200, "application/json", ``), "without a token in JSON", false},
		"something else": {answer(200, "application/json", `{"access_token":["s3cret-token"]}`), "without a token in JSON", false},
	} {
		t.Run(name, func(t *testing.T) {
			issuer := httptest.NewServer(tc.answer)
			defer issuer.Close()
			o, err := reads(t, map[string]string{"sasl.oauthbearer.token.endpoint.url": issuer.URL, "sasl.oauthbearer.sub.claim.name": "azp"})
			require.NoError(t, err)
			_, err = o.token(t.Context())
			require.ErrorContains(t, err, tc.says)
			require.Contains(t, err.Error(), "sasl.oauthbearer.")
			require.NotContains(t, err.Error(), "s3cret")
			require.Equal(t, tc.passes, kindOf(err) == nil)
		})
	}
	t.Run("hangs", func(t *testing.T) {
		release := make(chan struct{})
		issuer := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		defer issuer.Close()
		defer close(release)
		o, err := reads(t, map[string]string{"sasl.oauthbearer.token.endpoint.url": issuer.URL})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = o.token(ctx)
		require.ErrorContains(t, err, "did not answer in time: look at sasl.oauthbearer.token.endpoint.url")
		require.NoError(t, kindOf(err))
	})
	t.Run("another CA", func(t *testing.T) {
		issuer := httptest.NewTLSServer(answer(200, "application/json", "{}"))
		defer issuer.Close()
		o, err := reads(t, map[string]string{"sasl.oauthbearer.token.endpoint.url": issuer.URL})
		require.NoError(t, err)
		_, err = o.token(t.Context())
		require.ErrorContains(t, err, "look at https.ca.location")
		require.Equal(t, kafka.ErrAuthentication, kindOf(err))
	})
	t.Run("nobody is there", func(t *testing.T) {
		o, err := reads(t, map[string]string{"sasl.oauthbearer.token.endpoint.url": "http://neli:s3cret@127.0.0.1:1/token?key=s3cret"})
		require.NoError(t, err)
		_, err = o.token(t.Context())
		require.ErrorContains(t, err, "127.0.0.1:1/token cannot be asked")
		require.NotContains(t, err.Error(), "s3cret")
		require.NoError(t, kindOf(err))
	})
}

func TestTokenProperties(t *testing.T) {
	const at = "https://issuer.example/token"
	for _, tc := range []struct {
		props map[string]string
		says  string
	}{
		{map[string]string{"sasl.oauthbearer.token.endpoint.url": ""}, "sasl.oauthbearer.token.endpoint.url: must be an address"},
		{map[string]string{"sasl.oauthbearer.token.endpoint.url": "issuer.example"}, "sasl.oauthbearer.token.endpoint.url: must be an address"},
		{map[string]string{"sasl.oauthbearer.client.secret": ""}, "sasl.oauthbearer.client.secret: is needed"},
		{map[string]string{"sasl.oauthbearer.client.id": ""}, "sasl.oauthbearer.client.id: is needed"},
		{map[string]string{"sasl.oauthbearer.method": ""}, "needs sasl.oauthbearer.method=oidc (in Go: or Config.LoginToken)"},
		{map[string]string{"sasl.oauthbearer.extensions": "auth=x"}, "sasl.oauthbearer.extensions: must be"},
		{map[string]string{"https.ca.location": "/nowhere"}, "https.ca.location: open /nowhere"},
		{map[string]string{"https.ca.pem": "none"}, "https.ca.pem: holds no certificate"},
		{map[string]string{"sasl.oauthbearer.metadata.authentication.type": "azure_imds"}, "in Go: set Config.LoginToken"},
		{map[string]string{"sasl.oauthbearer.grant.type": "password"}, "sasl.oauthbearer.grant.type=password: must be client_credentials or urn:"},
		{map[string]string{"sasl.oauthbearer.grant.type": grantAssertion}, "sasl.oauthbearer.assertion.private.key.file: is needed"},
		{map[string]string{"sasl.oauthbearer.grant.type": grantAssertion, "sasl.oauthbearer.assertion.private.key.pem": "s3cret"}, "sasl.oauthbearer.assertion.private.key: is not a key"},
		{map[string]string{"sasl.oauthbearer.grant.type": grantAssertion, "sasl.oauthbearer.assertion.file": "/nowhere"}, "sasl.oauthbearer.assertion.file: open /nowhere"},
		{map[string]string{"sasl.oauthbearer.grant.type": grantAssertion, "sasl.oauthbearer.assertion.file": "/f", "sasl.oauthbearer.assertion.claim.aud": "a"}, "goes with no other"},
		{map[string]string{"sasl.mechanism": "PLAIN"}, "sasl.oauthbearer.method: has no effect with sasl.mechanism=PLAIN"},
		{map[string]string{"sasl.mechanism": "AWS_MSK_IAM"}, "github.com/goneli/neli/franz/iam"},
	} {
		if _, set := tc.props["sasl.oauthbearer.token.endpoint.url"]; !set {
			tc.props["sasl.oauthbearer.token.endpoint.url"] = at
		}
		_, err := reads(t, tc.props)
		require.ErrorContains(t, err, tc.says)
		require.NotContains(t, err.Error(), "s3cret")
	}
}

// The endpoint gets the id and the secret as they are, as from librdkafka
// (rd_kafka_oidc_client_credentials_build_auth_header).
func TestEndpointGetsTheSecretUnencoded(t *testing.T) {
	const id, secret = "a+b", "s/c=r%t+ü"
	var got string
	token := issued(t, jwt.MapClaims{"sub": "service", "exp": time.Now().Add(time.Hour).Unix()})
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		if r.PostFormValue("client_id") != "" || r.PostFormValue("client_secret") != "" {
			t.Error("the secret is in the body")
		}
		answer(200, "application/json", `{"access_token":"`+token+`"}`)(w, r)
	}))
	defer issuer.Close()
	o, err := reads(t, map[string]string{"sasl.oauthbearer.token.endpoint.url": issuer.URL, "sasl.oauthbearer.client.id": id, "sasl.oauthbearer.client.secret": secret})
	require.NoError(t, err)
	_, err = o.token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte(id+":"+secret)), got)
}

// Redirects to another server are not followed: that server would get the secret or the assertion.
// The error names the property to change. Redirects within the same server are followed.
func TestRedirectsToOtherServersAreNotFollowed(t *testing.T) {
	assertion := filepath.Join(t.TempDir(), "assertion")
	require.NoError(t, os.WriteFile(assertion, []byte("a.b.c"), 0o600))
	token := issued(t, jwt.MapClaims{"sub": "service", "exp": time.Now().Add(time.Hour).Unix()})
	for name, props := range map[string]map[string]string{
		"secret":    {"sasl.oauthbearer.client.id": "id", "sasl.oauthbearer.client.secret": "s3cret"},
		"assertion": {"sasl.oauthbearer.grant.type": grantAssertion, "sasl.oauthbearer.assertion.file": assertion},
	} {
		t.Run(name, func(t *testing.T) {
			other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another server is asked") }))
			defer other.Close()
			var to string
			issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _, basic := r.BasicAuth()
				if !basic && r.PostFormValue("assertion") == "" {
					t.Errorf("%s gets neither the secret nor an assertion", r.URL.Path)
				}
				if r.URL.Path != "/there" {
					http.Redirect(w, r, to, http.StatusTemporaryRedirect)
					return
				}
				answer(200, "application/json", `{"access_token":"`+token+`"}`)(w, r)
			}))
			defer issuer.Close()
			props["sasl.oauthbearer.token.endpoint.url"] = issuer.URL
			o, err := reads(t, props)
			require.NoError(t, err)

			to = other.URL
			_, err = o.token(t.Context())
			require.ErrorContains(t, err, "answers 307: look at sasl.oauthbearer.token.endpoint.url")
			require.ErrorIs(t, err, kafka.ErrAuthentication)

			to = "/there"
			_, err = o.token(t.Context())
			require.NoError(t, err)

			to = "/elsewhere"
			_, err = o.token(t.Context())
			require.ErrorContains(t, err, "redirects again and again")
		})
	}
}

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
