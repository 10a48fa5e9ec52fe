package kafkatest

// TokenBootstrap returns the addresses for logins with tokens, separated by commas, or "" unless the cluster was
// started with an Issuer.
func (c *Cluster) TokenBootstrap() string {
	if c.opts.Issuer == "" {
		return ""
	}
	return c.bootstrap(tokenListener)
}

// tokenProperties returns the settings of the listener for tokens, which uses Kafka's own validator.
func tokenProperties(issuer string) map[string]string {
	const listener, mechanism = "listener.name.token.", "listener.name.token.oauthbearer."
	return map[string]string{
		"sasl.enabled.mechanisms":                        "OAUTHBEARER", // the validator is not loaded without it
		listener + "sasl.enabled.mechanisms":             "OAUTHBEARER",
		mechanism + "sasl.jaas.config":                   "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
		mechanism + "sasl.server.callback.handler.class": "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
		mechanism + "sasl.oauthbearer.jwks.endpoint.url": issuer + "/jwks",
		mechanism + "sasl.oauthbearer.expected.audience": "kafka",
		mechanism + "sasl.oauthbearer.expected.issuer":   issuer,
		mechanism + "connections.max.reauth.ms":          "20000",
	}
}
