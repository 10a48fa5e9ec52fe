package neli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/goneli/neli/internal/login"
	"github.com/goneli/neli/internal/redact"
	"github.com/goneli/neli/kafka"
)

// checkLogin prepares the log-in with Config.LoginToken.
func (s *settings) checkLogin(f *faults) {
	if s.LoginToken == nil || s.majority && s.logs == 0 {
		return
	}
	protocol := s.kafka["security.protocol"]
	f.check(strings.HasPrefix(strings.ToLower(protocol), "sasl_"), "KafkaConfig[security.protocol]", protocol,
		"must be SASL_SSL with LoginToken (or SASL_PLAINTEXT, which sends tokens in clear text)")
	for _, name := range []string{"sasl.mechanism", "sasl.mechanisms"} {
		value := s.kafka[name]
		f.check(value == "" || strings.EqualFold(value, "OAUTHBEARER"), "KafkaConfig["+name+"]", value, "must be OAUTHBEARER with LoginToken, or be left out")
		delete(s.kafka, name)
	}
	s.kafka["sasl.mechanism"] = "OAUTHBEARER"
	for _, name := range slices.Sorted(maps.Keys(s.kafka)) {
		f.check(!strings.HasPrefix(name, "sasl.oauthbearer."), "KafkaConfig["+name+"]", redact.Properties(s.kafka)[name],
			"has no effect with LoginToken: tokens are had by one or the other")
	}
	get := s.LoginToken
	s.tokens = login.NewSource("Config.LoginToken", func(ctx context.Context) (kafka.Token, error) {
		token, err := get(ctx)
		if errors.Is(err, ErrAccess) {
			err = login.Refused(err)
		}
		return token, err
	}, s.health.loginFailed)
}

// endTokens ends the call of Config.LoginToken, and waits until it has returned or ctx is done.
func (s *settings) endTokens(ctx context.Context) {
	if s.tokens != nil {
		s.tokens.Close(ctx)
	}
}

// endTokensSoon is endTokens for callers that cannot wait for a call that ignores its context.
func (s *settings) endTokensSoon() {
	ctx, cancel := context.WithTimeout(context.Background(), login.Grace)
	defer cancel()
	s.endTokens(ctx)
}
