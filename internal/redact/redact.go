// Package redact cuts secrets out of what is shown: Kafka properties, log lines, errors.
package redact

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Mark stands where a secret was.
const Mark = "[redacted]"

// secretParts are what gives a property away as secret. A rule by name rather
// than a list of names: a client's next version may add a property, and one that
// is hidden without need costs less than one that is shown.
var secretParts = []string{
	"password", "passwd", "passphrase", "secret", "token", "credential",
	"pem", "keystore", "jaas", "private", "sasl.oauthbearer.",
}

// public are properties that the rule takes for secret and that are none: without them a log
// could not say which login was refused, and "oidc" would be cut out of every line.
var public = []string{
	"sasl.oauthbearer.method", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id",
	"sasl.oauthbearer.scope", "sasl.oauthbearer.token.endpoint.url",
	"sasl.oauthbearer.grant.type", "sasl.oauthbearer.assertion.algorithm", "sasl.oauthbearer.assertion.file",
	"sasl.oauthbearer.assertion.jwt.template.file", "sasl.oauthbearer.assertion.private.key.file",
	"sasl.oauthbearer.metadata.authentication.type", "sasl.oauthbearer.sub.claim.name",
	"sasl.oauthbearer.assertion.claim.aud", "sasl.oauthbearer.assertion.claim.exp.seconds",
	"sasl.oauthbearer.assertion.claim.iss", "sasl.oauthbearer.assertion.claim.jti.include",
	"sasl.oauthbearer.assertion.claim.nbf.seconds", "sasl.oauthbearer.assertion.claim.sub",
}

// Secret reports whether the value of the property must not be shown.
// sasl.username is no secret: without it nobody can tell who was refused.
func Secret(name string) bool {
	name = strings.ToLower(name)
	if slices.Contains(public, name) {
		return false
	}
	for _, part := range secretParts {
		if strings.Contains(name, part) {
			return true
		}
	}
	return slices.Contains(strings.Split(name, "."), "key") // ssl.key.*
}

// hidden reports whether a property is secret and has a value to hide. A switch has
// none: its "true" would be cut out of every line.
func hidden(name, value string) bool {
	return value != "" && value != "true" && value != "false" && Secret(name)
}

// Properties returns the properties as they may be shown.
func Properties(props map[string]string) map[string]string {
	shown := maps.Clone(props)
	secrets := Of(props)
	for name, value := range shown {
		if hidden(name, value) {
			shown[name] = Mark
		} else {
			shown[name] = secrets.Text(value)
		}
	}
	return shown
}

// Secrets are strings that must not be shown. What a Neli logs goes through Logger,
// and what it returns through Err, so that Kafka clients need not know of them.
type Secrets []string

// token has the shape of a JWT: three parts in base64, of which the first begins with {".
var token = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*`)

// minSecretLine is the length in bytes from which on a single line of a
// multi-line secret (PEM) is one by itself: a log may show just that line, but
// blank lines and stray brackets would redact everything.
const minSecretLine = 8

// Of returns the secrets among Kafka properties: the values, and the long lines of those
// that have several.
func Of(props map[string]string) Secrets {
	var s Secrets
	for name, value := range props {
		if u, err := url.Parse(value); strings.HasSuffix(name, ".url") && err == nil {
			if password, _ := u.User.Password(); password != "" { // the rest of an address is none
				s = append(s, password)
			}
		}
		if strings.HasPrefix(name, "sasl.mechanism") && strings.EqualFold(value, "OAUTHBEARER") && s == nil {
			s = Secrets{} // its tokens are unknown here, and found by their shape
		}
		if !hidden(name, value) {
			continue
		}
		s = append(s, value)
		if !strings.ContainsAny(value, "\r\n") {
			continue
		}
		for line := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '\r' || r == '\n' }) {
			line = strings.TrimSpace(line)
			if len(line) >= minSecretLine && !strings.HasPrefix(line, "-----") {
				s = append(s, line)
			}
		}
	}
	return s
}

// Text returns line with all secrets cut out. It finds every occurrence first and replaces
// afterwards: replacing one secret after the other would leave the rest of one that overlaps
// another.
func (s Secrets) Text(line string) string {
	type span struct{ from, to int }
	var spans []span
	for _, secret := range s {
		for from := 0; ; from++ {
			i := strings.Index(line[from:], secret)
			if i < 0 {
				break
			}
			from += i
			spans = append(spans, span{from, from + len(secret)})
		}
	}
	if strings.Contains(line, "eyJ") {
		for _, at := range token.FindAllStringIndex(line, -1) {
			spans = append(spans, span{at[0], at[1]})
		}
	}
	if spans == nil {
		return line
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })

	var out strings.Builder
	shown := 0 // everything before this has been dealt with
	for _, sp := range spans {
		if sp.from >= shown {
			out.WriteString(line[shown:sp.from])
			if sp.from > shown || shown == 0 {
				out.WriteString(Mark) // neighbours share one
			}
		}
		shown = max(shown, sp.to)
	}
	out.WriteString(line[shown:])
	return out.String()
}
