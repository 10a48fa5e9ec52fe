// Package redact cuts secrets out of output: Kafka properties, log lines, errors.
package redact

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Mark replaces a secret.
const Mark = "[redacted]"

// secretParts are the words by which a property's name shows that it is secret. This is a rule
// rather than a list of names: a client's next version may add properties, and it is worse to
// show a secret than to hide a harmless value.
var secretParts = []string{
	"password", "passwd", "passphrase", "secret", "token", "credential",
	"pem", "keystore", "jaas", "private", "sasl.oauthbearer.",
}

// public are properties that the rule takes for secret although they are not. If they were
// hidden, a log could not say which login was refused, and "oidc" would be cut out of every line.
var public = []string{
	"ssl.keystore.location", "ssl.key.location", // paths of files
	"sasl.oauthbearer.method", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id",
	"sasl.oauthbearer.scope", "sasl.oauthbearer.token.endpoint.url",
	"sasl.oauthbearer.grant.type", "sasl.oauthbearer.assertion.algorithm", "sasl.oauthbearer.assertion.file",
	"sasl.oauthbearer.assertion.jwt.template.file", "sasl.oauthbearer.assertion.private.key.file",
	"sasl.oauthbearer.metadata.authentication.type", "sasl.oauthbearer.sub.claim.name",
	"sasl.oauthbearer.assertion.claim.aud", "sasl.oauthbearer.assertion.claim.exp.seconds",
	"sasl.oauthbearer.assertion.claim.iss", "sasl.oauthbearer.assertion.claim.jti.include",
	"sasl.oauthbearer.assertion.claim.nbf.seconds", "sasl.oauthbearer.assertion.claim.sub",
}

// Secret reports whether the value of the property must not be shown. sasl.username is not
// secret: without it nobody could tell which user was refused.
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

// hidden reports whether a property is secret and has a value to hide. A Boolean has none: its
// "true" would be cut out of every line.
func hidden(name, value string) bool {
	return value != "" && value != "true" && value != "false" && Secret(name)
}

// Properties returns a copy of the properties that may be shown.
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

// Secrets are strings that must not be shown. A Neli logs through Logger and returns errors
// through Err, so Kafka clients need not know the secrets.
type Secrets []string

// token matches a JWT: three parts in base64, of which the first begins with {".
var token = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*`)

// minSecretLine is the least length in bytes of a line of a multi-line secret (PEM) that counts
// as a secret by itself. A log may show just that line. But blank lines and stray brackets would
// redact everything.
const minSecretLine = 8

// Of returns the secrets among Kafka properties: their values, with and without the space around
// them, the long lines of values with several lines, and the secrets in URLs. Each is returned as it
// is and as it is quoted, since errors quote values.
func Of(props map[string]string) Secrets {
	var s Secrets
	for name, value := range props {
		if strings.HasSuffix(strings.ToLower(name), ".url") {
			s = append(s, ofURL(value)...)
		}
		if strings.HasPrefix(name, "sasl.mechanism") && strings.EqualFold(value, "OAUTHBEARER") && s == nil {
			s = Secrets{} // the client's tokens are unknown here; Text finds them by their shape
		}
		if !hidden(name, value) {
			continue
		}
		s = append(s, value)
		if trimmed := strings.TrimSpace(value); trimmed != "" && trimmed != value {
			s = append(s, trimmed) // a file's last line ends with a newline, which a client may drop
		}
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
	for _, secret := range s {
		quoted := strconv.Quote(secret)
		if quoted = quoted[1 : len(quoted)-1]; quoted != secret {
			s = append(s, quoted)
		}
	}
	return s
}

// ofURL returns the secrets in a URL: its password, or its user if it has no password, its whole
// query, and the values in the query whose names show that they are secret. A user without a
// password may be a token. ofURL cuts the text instead of parsing it, because a URL that is not valid
// is shown, too: in the error of the client that refuses it. Passwords and values are returned as
// they are written and decoded, since an error may have either.
//
// A password that should have been escaped may have a "/", "?" or "#". So all up to the last "@"
// may be the password, wherever that is.
func ofURL(text string) (s Secrets) {
	rest := text
	if _, after, ok := strings.Cut(text, "://"); ok {
		rest = after
	}
	authority, _, _ := strings.Cut(rest, "/")
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		if user, password, _ := strings.Cut(authority[:at], ":"); user != "" && password == "" {
			s = append(s, authority[:at+1]) // with its mark: a short user would be cut out of every line
			if len(user) >= minSecretLine {
				s = append(s, user)
				if decoded, err := url.PathUnescape(user); err == nil {
					s = append(s, decoded)
				}
			}
		}
	}
	for _, part := range []string{authority, rest} {
		at := strings.LastIndex(part, "@")
		if at < 0 {
			continue
		}
		if _, password, _ := strings.Cut(part[:at], ":"); password != "" {
			s = append(s, password)
			if decoded, err := url.PathUnescape(password); err == nil {
				s = append(s, decoded)
			}
		}
	}
	text, _, _ = strings.Cut(text, "#")
	_, query, _ := strings.Cut(text, "?")
	if query != "" {
		s = append(s, "?"+query) // with its mark: a query as short as "1" would be cut out of every line
	}
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); hidden(name, value) {
			s = append(s, value)
			if decoded, err := url.QueryUnescape(value); err == nil {
				s = append(s, decoded)
			}
		}
	}
	return s
}

// Text returns line with all secrets cut out. It first finds all occurrences, and then replaces
// them. Replacing one secret after the other would leave the rest of a secret that overlaps
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
	shown := 0 // everything before this is done
	for _, sp := range spans {
		if sp.from >= shown {
			out.WriteString(line[shown:sp.from])
			if sp.from > shown || shown == 0 {
				out.WriteString(Mark) // adjoining secrets share one
			}
		}
		shown = max(shown, sp.to)
	}
	out.WriteString(line[shown:])
	return out.String()
}
