// Package iam logs in to Amazon MSK with IAM (sasl.mechanism=AWS_MSK_IAM), with the credentials
// that AWS's own tools would use. It is a module of its own, so that only its users depend on
// AWS's SDK.
//
//	neli.Config{
//		KafkaConfig: neli.KafkaConfigMap{"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM", …},
//		Provider:    franz.Provider(kgo.SASL(iam.Mechanism())),
//	}
//
// confluent-kafka-go has no such mechanism. For that client, set neli.Config.LoginToken and make the
// tokens with AWS's aws-msk-iam-sasl-signer-go.
package iam

import (
	"context"
	"fmt"
	"sync"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/aws"
)

// Mechanism signs each login with credentials of the default chain of AWS's SDK: environment,
// shared files (AWS_PROFILE), web identity, container, instance. It keeps them until the SDK counts
// them as expired. options are passed to config.LoadDefaultConfig. The region is the one in
// the broker's name, or else AWS_REGION or AWS_DEFAULT_REGION. Nothing is requested from AWS
// before the first login. If there are no credentials, that login fails, and the next one tries
// again. Several clients may use one Mechanism.
func Mechanism(options ...func(*config.LoadOptions) error) sasl.Mechanism {
	c := &chain{options: options}
	return aws.ManagedStreamingIAM(c.sign)
}

// chain returns credentials of the default chain.
type chain struct {
	options []func(*config.LoadOptions) error

	mu     sync.Mutex // guards loaded
	loaded sdk.CredentialsProvider
}

func (c *chain) sign(ctx context.Context) (aws.Auth, error) {
	provider, err := c.provider(ctx)
	if err != nil {
		return aws.Auth{}, fmt.Errorf("no AWS configuration: %w: look at AWS_PROFILE and AWS's shared files", err)
	}
	have, err := provider.Retrieve(ctx)
	if err != nil {
		return aws.Auth{}, fmt.Errorf("no AWS credentials: %w: look at AWS_PROFILE, AWS_ACCESS_KEY_ID, or the role of this machine", err)
	}
	return aws.Auth{AccessKey: have.AccessKeyID, SecretKey: have.SecretAccessKey, SessionToken: have.SessionToken}, nil
}

// provider reads the configuration once, from files and the environment, without the network. If
// two goroutines do so at the same time, both get the same provider.
func (c *chain) provider(ctx context.Context) (sdk.CredentialsProvider, error) {
	if p := c.known(nil); p != nil {
		return p, nil
	}
	cfg, err := config.LoadDefaultConfig(ctx, c.options...)
	if err != nil {
		return nil, err
	}
	return c.known(cfg.Credentials), nil
}

// known stores the first provider given to it, and returns that one.
func (c *chain) known(p sdk.CredentialsProvider) sdk.CredentialsProvider {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded == nil {
		c.loaded = p
	}
	return c.loaded
}
