package integration

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

const (
	issuerSecret = "cl1ent-s3cret"
	issuerLife   = 30 * time.Second // short, but longer than a login session of kafkatest's brokers
)

// issuer issues tokens to clients that know the secret, like an identity provider. The client's id is the subject.
type issuer struct {
	*httptest.Server
	key   *rsa.PrivateKey
	to    sync.Map // *atomic.Int64 by subject: tokens issued
	asked atomic.Int64
	// answers, if set, replaces the answers with tokens.
	answers atomic.Pointer[http.HandlerFunc]
	assert  atomic.Pointer[rsa.PublicKey] // the key of clients that log in by an assertion
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	i := &issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/jwks", i.keys)
	mux.HandleFunc("/token", i.token)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) keys(w http.ResponseWriter, _ *http.Request) {
	text := func(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }
	answer(w, http.StatusOK, map[string]any{"keys": []map[string]string{{"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig",
		"n": text(i.key.N), "e": text(big.NewInt(int64(i.key.E)))}}})
}

func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	i.asked.Add(1)
	if other := i.answers.Load(); other != nil {
		(*other)(w, r)
		return
	}
	id, secret, _ := r.BasicAuth()
	if r.FormValue("grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		assertion, err := jwt.Parse(r.FormValue("assertion"), func(*jwt.Token) (any, error) { return i.assert.Load(), nil },
			jwt.WithValidMethods([]string{"RS256"}), jwt.WithAudience(i.URL), jwt.WithExpirationRequired())
		if err != nil {
			answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
			return
		}
		secret = issuerSecret
		id, _ = assertion.Claims.GetSubject()
	}
	if secret != issuerSecret {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	answer(w, http.StatusOK, map[string]any{"access_token": i.issue(id, issuerLife), "token_type": "Bearer", "expires_in": int(issuerLife.Seconds()), "scope": r.FormValue("scope")})
}

// issued returns the number of tokens issued to a subject.
func (i *issuer) issued(subject string) int64 {
	count, ok := i.to.Load(subject)
	if !ok {
		return 0
	}
	return count.(*atomic.Int64).Load()
}

// issue signs a token.
func (i *issuer) issue(subject string, life time.Duration) string {
	count, _ := i.to.LoadOrStore(subject, new(atomic.Int64))
	count.(*atomic.Int64).Add(1)
	now := time.Now()
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{"iss": i.URL, "sub": subject, "aud": "kafka", "iat": now.Unix(),
		"exp": now.Add(life).Unix(), "scope": "neli", "jti": rand.Text()})
	token.Header["kid"] = "one"
	signed, err := token.SignedString(i.key)
	if err != nil {
		panic(err) // the key is ours
	}
	return signed
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// instead sets an answer in place of tokens.
func (i *issuer) instead(status int, kind, body string) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	})
	i.answers.Store(&h)
}

// hang makes the issuer never answer.
func (i *issuer) hang() {
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client hangs up
		<-r.Context().Done()
	})
	i.answers.Store(&h)
}
