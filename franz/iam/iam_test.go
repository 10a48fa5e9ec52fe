package iam_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/franz/iam"
	"github.com/goneli/neli/internal/said"
	"github.com/goneli/neli/kafka"
)

const (
	accessKey = "AKIDEXAMPLE"
	secretKey = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	session   = "s3ssion-token"
	region    = "eu-central-1"
)

// verifier is a broker that accepts a login signed with the secret key, by the rules of AWS's own signer.
type verifier struct {
	mu   sync.Mutex
	seen []map[string]string
	log  said.Text
}

func (v *verifier) start(t *testing.T) *kfake.Cluster {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "log"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	c.ControlKey(int16(kmsg.SASLHandshake), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := kmsg.NewPtrSASLHandshakeResponse()
		resp.SupportedMechanisms = []string{"AWS_MSK_IAM"}
		return resp, nil, true
	})
	c.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		if v.signed(req.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes) {
			resp.SASLAuthBytes = []byte(`{"version":"2020_10_22","request-id":"1"}`)
		} else {
			resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		}
		return resp, nil, true
	})
	return c
}

// signed signs the same request, and compares the signatures.
func (v *verifier) signed(payload []byte) bool {
	var got map[string]string
	if json.Unmarshal(payload, &got) != nil {
		return false
	}
	v.mu.Lock()
	v.seen = append(v.seen, got)
	v.mu.Unlock()
	at, err := time.Parse("20060102T150405Z", got["x-amz-date"])
	if err != nil || time.Since(at).Abs() > 5*time.Minute || got["version"] != "2020_10_22" || got["action"] != "kafka-cluster:Connect" {
		return false
	}
	query := url.Values{"Action": {got["action"]}, "X-Amz-Expires": {got["x-amz-expires"]}}
	req, err := http.NewRequest(http.MethodGet, "kafka://"+got["host"]+"/?"+query.Encode(), nil)
	if err != nil {
		return false
	}
	empty := "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	creds := sdk.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey, SessionToken: session}
	signed, _, err := v4.NewSigner().PresignHTTP(req.Context(), creds, req, empty, "kafka-cluster", region, at)
	if err != nil {
		return false
	}
	want, err := url.Parse(signed)
	return err == nil && want.Query().Get("X-Amz-Signature") == got["x-amz-signature"]
}

// brokers asks for the brokers, as a Neli would.
func (v *verifier) brokers(t *testing.T, c *kfake.Cluster) error {
	props := map[string]string{"bootstrap.servers": c.ListenAddrs()[0], "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "AWS_MSK_IAM",
		"socket.timeout.ms": "2000", "retry.backoff.ms": "20", "retry.backoff.max.ms": "100"}
	provider := franz.Provider(kgo.SASL(iam.Mechanism()))
	log := v.log.Logger(slog.LevelDebug)
	p, err := provider.Producer(props, log)
	require.NoError(t, err)
	defer p.Close()
	a, err := provider.Admin(p)
	require.NoError(t, err)
	defer a.Close()
	_, err = a.Brokers(t.Context(), false)
	return err
}

// environment provides credentials in files of the default chain, and nowhere else.
func environment(t *testing.T, secret string) {
	dir := t.TempDir()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE"} {
		t.Setenv(name, "")
		require.NoError(t, os.Unsetenv(name))
	}
	file := filepath.Join(dir, "credentials")
	content := ""
	if secret != "" {
		content = "[kafka]\naws_access_key_id = " + accessKey + "\naws_secret_access_key = " + secret + "\naws_session_token = " + session + "\n"
	}
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	for name, value := range map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file, "AWS_CONFIG_FILE": filepath.Join(dir, "config"),
		"AWS_PROFILE": "kafka", "AWS_REGION": region, "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
}

func TestSigned(t *testing.T) {
	environment(t, secretKey)
	v := &verifier{}
	require.NoError(t, v.brokers(t, v.start(t)))
	require.NotEmpty(t, v.seen)
	require.Contains(t, v.seen[0]["x-amz-credential"], accessKey+"/")
	require.Equal(t, session, v.seen[0]["x-amz-security-token"])
	for _, secret := range []string{secretKey, session, v.seen[0]["x-amz-signature"]} {
		require.NotContains(t, v.log.String(), secret)
	}
}

func TestRefused(t *testing.T) {
	environment(t, "an0ther/secret")
	v := &verifier{}
	err := v.brokers(t, v.start(t))
	require.ErrorIs(t, err, kafka.ErrAuthentication)
	require.NotContains(t, err.Error(), "an0ther")
}

func TestNoCredentials(t *testing.T) {
	environment(t, "")
	t.Setenv("AWS_PROFILE", "")
	require.NoError(t, os.Unsetenv("AWS_PROFILE"))
	v := &verifier{}
	c := v.start(t)
	err := v.brokers(t, c)
	require.ErrorContains(t, err, "no AWS credentials")
	require.ErrorContains(t, err, "look at AWS_PROFILE")
	require.NotErrorIs(t, err, kafka.ErrAuthentication, "takes missing credentials for final")
}

// Without the option, New refuses the property, and says what is missing.
func TestPropertyWithoutTheOptionIsRefused(t *testing.T) {
	_, err := franz.Provider().Producer(map[string]string{"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "github.com/goneli/neli/franz/iam")
}
