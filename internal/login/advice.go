package login

import "strings"

// advice names the properties to look at, by words of a token endpoint, of the connection to it,
// or of a broker.
var advice = []struct{ said, look string }{
	{"certificate", "https.ca.location (or https.ca.pem)"},
	{"trust anchors", "https.ca.location (or https.ca.pem)"}, // the file is missing
	{"invalid_client", "sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret"},
	{"unauthorized_client", "sasl.oauthbearer.client.id and sasl.oauthbearer.grant.type"},
	{"invalid_scope", "sasl.oauthbearer.scope"},
	{"invalid_grant", "sasl.oauthbearer.assertion.*"},
	{"unsupported_grant_type", "sasl.oauthbearer.grant.type"},
	{"assertion", "sasl.oauthbearer.assertion.*"},
	{`"exp"`, "sasl.oauthbearer.token.endpoint.url: its tokens have no expiry"},
	{"unexpired", "sasl.oauthbearer.token.endpoint.url: its tokens have expired when they arrive; compare the clocks"},
}

// Advice returns which property to look at.
func Advice(said string) string {
	said = strings.ToLower(said)
	for _, a := range advice {
		if strings.Contains(said, a.said) {
			return "look at " + a.look
		}
	}
	return "look at sasl.oauthbearer.token.endpoint.url"
}
