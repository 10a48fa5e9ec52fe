package redact

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func TestSecretProperty(t *testing.T) {
	for name, want := range map[string]bool{
		"sasl.password":                  true,
		"SASL.Password":                  true,
		"sasl.oauthbearer.config":        true,
		"sasl.oauthbearer.client.secret": true,
		"sasl.oauthbearer.client.id":     false,
		"sasl.oauthbearer.method":        false,
		"sasl.oauthbearer.scope":         false,
		"sasl.oauthbearer.later":         true,
		"sasl.oauthbearer.extensions":    true,
		"SASL.OAuthBearer.grant.type":    false,

		"sasl.oauthbearer.token.endpoint.url":               false,
		"sasl.oauthbearer.client.credentials.client.secret": true,
		"sasl.oauthbearer.assertion.private.key.pem":        true,
		"sasl.oauthbearer.assertion.private.key.passphrase": true,
		"sasl.oauthbearer.assertion.private.key.file":       false,
		"sasl.jaas.config":              true,
		"ssl.key.password":              true,
		"ssl.key.pem":                   true,
		"ssl.key.location":              false,
		"ssl.certificate.pem":           true,
		"ssl.keystore.location":         false,
		"ssl.keystore.password":         true,
		"some.future.access.token":      true,
		"vault.credentials":             true,
		"sasl.username":                 false,
		"sasl.mechanisms":               false,
		"bootstrap.servers":             false,
		"ssl.ca.location":               false,
		"ssl.certificate.location":      false,
		"group.id":                      false,
		"partition.assignment.strategy": false,
		"socket.keepalive.enable":       false,
	} {
		if got := Secret(name); got != want {
			t.Errorf("Secret(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestRedact(t *testing.T) {
	pem := "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n}\n-----END PRIVATE KEY-----\n"
	props := map[string]string{
		"sasl.username":    "alice",
		"sasl.password":    "s3cret",
		"ssl.key.pem":      pem,
		"ssl.key.password": "cretaceous", // overlaps the other one
	}
	for in, want := range map[string]string{
		"":                            "",
		"nothing to hide":             "nothing to hide",
		"alice:s3cret@broker":         "alice:[redacted]@broker",
		"s3crets3cret":                "[redacted]",
		"s3cret and s3cret":           "[redacted] and [redacted]",
		"xs3cretaceousx":              "x[redacted]x",
		"bad line: hkiG9w0BAQEFAASC!": "bad line: [redacted]!",
		"{}":                          "{}",
		"key:\n" + pem + "end":        "key:\n[redacted]end",
	} {
		if got := Of(props).Text(in); got != want {
			t.Errorf("redact(%q) = %q, want %q", in, got, want)
		}
	}
}

// Properties of tokens show who logs in, how and where, but no secret. A token that is not among
// the properties is found by its shape.
func TestTokens(t *testing.T) {
	s := Of(map[string]string{"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "neli",
		"sasl.oauthbearer.client.secret": "s3cret", "sasl.oauthbearer.token.endpoint.url": "https://neli:0pen@issuer.example/token"})
	const jwt = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJuZWxpIn0.c2lnbmVk"
	for in, want := range map[string]string{
		"topic=neli.1 method=oidc":                         "topic=neli.1 method=oidc",
		"POST https://neli:0pen@issuer.example/token: 401": "POST https://neli:[redacted]@issuer.example/token: 401",
		"got " + jwt + " for s3cret":                       "got [redacted] for [redacted]",
		"eyJ.":                                             "eyJ.",
	} {
		if got := s.Text(in); got != want {
			t.Errorf("redact(%q) = %q, want %q", in, got, want)
		}
	}
	if Of(map[string]string{"sasl.mechanisms": "oauthbearer"}) == nil {
		t.Error("a log would not look for tokens")
	}
}

// A password or query of a URL is hidden as it is written, even if the URL is not valid.
func TestSecretsOfURLs(t *testing.T) {
	for value, secret := range map[string]string{
		"https://u:p%40ssw0rd@h/t":               "p%40ssw0rd",
		"https://u:pass%word1@h/t":               "pass%word1",
		"https://u:pa ssword@h/t":                "pa ssword",
		"https://u:pa@ss:word@h/t?x=a@b":         "pa@ss:word",
		"https://u:pa/ssword@h/t":                "ssword",
		"https://u:pa?ssword@h/t":                "pa",
		"https://u:pa#ssword@h/t":                "ssword",
		"https://u:99/ssword@h/t":                "99/ssword",
		"https://u:pa@x/ssword@h/t":              "ssword",
		"https://0penSesame@h/t":                 "0penSesame",
		"https://0penSesame:@h/t":                "0penSesame",
		"https://tok@h/t":                        "tok@",
		"https://h/t?client_secret=abcdef":       "abcdef",
		"https://h/t?v=1&client_secret=abcdef#x": "abcdef",
	} {
		const name = "sasl.oauthbearer.token.endpoint.url"
		shown := Properties(map[string]string{name: value})[name]
		if !strings.Contains(shown, Mark) || strings.Contains(shown, secret) {
			t.Errorf("%q is shown as %q", value, shown)
		}
	}
	s := Of(map[string]string{"sasl.oauthbearer.token.endpoint.url": "https://u:p%40ssw0rd@h/t?v=1&client_secret=a%2Fbcdef"})
	for in, want := range map[string]string{
		"v=1, 401 for p@ssw0rd":            "v=1, 401 for [redacted]",
		"a%2Fbcdef is not a/bcdef":         "[redacted] is not [redacted]",
		"https://u:p%40ssw0rd@h/t refuses": "https://u:[redacted]@h/t refuses",
	} {
		if got := s.Text(in); got != want {
			t.Errorf("redact(%q) = %q, want %q", in, got, want)
		}
	}
}

// A user without a password may be a token. It is hidden in every text, unless it is so short that any line may
// have it.
func TestUsersOfURLsWithoutPassword(t *testing.T) {
	for value, lines := range map[string]map[string]string{
		"https://0pen%2FSesame@h/t": {
			"Post https://0pen%2FSesame@h/t: 401": "Post https://[redacted]h/t: 401",
			"no user 0pen/Sesame":                 "no user [redacted]",
		},
		"https://tok:@h/t": {"Post https://tok:@h/t took 1s": "Post https://[redacted]h/t took 1s"},
	} {
		for in, want := range lines {
			if got := Of(map[string]string{"sasl.oauthbearer.token.endpoint.url": value}).Text(in); got != want {
				t.Errorf("redact(%q) = %q, want %q", in, got, want)
			}
		}
	}
}

// A URL without a user is shown whole, also with an "@" in its path.
func TestURLsWithoutPasswordAreShown(t *testing.T) {
	for _, value := range []string{"https://issuer.example:8443/t", "https://issuer.example/realms/a@b/t", "https://issuer.example/t:x"} {
		const name = "sasl.oauthbearer.token.endpoint.url"
		if shown := Properties(map[string]string{name: value})[name]; shown != value {
			t.Errorf("%q is shown as %q", value, shown)
		}
	}
}

// Errors quote values (%q, net/url), and clients trim them. A password from a file ends with a newline.
func TestQuotedAndTrimmedSecrets(t *testing.T) {
	const endpoint = "sasl.oauthbearer.token.endpoint.url"
	props := map[string]string{
		"sasl.password":                  `back\slash"es"`,
		"ssl.key.password":               "short\n",
		"sasl.oauthbearer.client.secret": " \n",
		endpoint:                         `https://u:pa"ssword@h/t`,
	}
	s := Of(props)
	_, err := url.Parse(props[endpoint])
	for in, want := range map[string]string{
		fmt.Sprintf("%q is refused", `back\slash"es"`): `"[redacted]" is refused`,
		fmt.Sprintf("%+q is refused", "short\n"):       `"[redacted]" is refused`,
		"short is refused":                             "[redacted] is refused",
		fmt.Sprint(err):                                `parse "https://u:[redacted]@h/t": net/url: invalid userinfo`,
		"nothing to hide":                              "nothing to hide",
	} {
		if got := s.Text(in); got != want {
			t.Errorf("redact(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestRedactProps(t *testing.T) {
	props := map[string]string{
		"sasl.username":     "alice",
		"sasl.password":     "s3cret",
		"client.id":         "alice-s3cret",
		"ssl.key.password":  "",
		"bootstrap.servers": "broker:9092",

		"enable.sasl.oauthbearer.unsecure.jwt": "true",
	}
	shown := Properties(props)
	for name, want := range map[string]string{
		"sasl.username":     "alice",
		"sasl.password":     Mark,
		"client.id":         "alice-[redacted]",
		"ssl.key.password":  "",
		"bootstrap.servers": "broker:9092",

		"enable.sasl.oauthbearer.unsecure.jwt": "true",
	} {
		if shown[name] != want {
			t.Errorf("%s is shown as %q, want %q", name, shown[name], want)
		}
	}
	if props["sasl.password"] != "s3cret" {
		t.Error("the properties themselves were changed")
	}
	if len(Properties(nil)) != 0 {
		t.Error("no properties became some")
	}
}

// The text between the marks must contain no secret.
func FuzzRedact(f *testing.F) {
	f.Add("s3cret", "cretaceous", "xs3cretaceousx")
	f.Add("aa", "a", "baaab")
	f.Add("]x[", "redacted", "[redacted]x[redacted]")
	f.Add("line one\nline two of it", "\xff", "two\xff line two of it")
	f.Fuzz(func(t *testing.T, password, token, line string) {
		props := map[string]string{"sasl.password": password, "a.token": token, "client.id": line}
		for _, out := range []string{Of(props).Text(line), Properties(props)["client.id"]} {
			for shown := range strings.SplitSeq(out, Mark) {
				for _, secret := range Of(props) {
					if strings.Contains(shown, secret) {
						t.Errorf("redact(%q) with secrets %q and %q shows %q", line, password, token, out)
					}
				}
			}
		}
	})
}
