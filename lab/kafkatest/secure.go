package kafkatest

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// An ACL lets a principal do one thing with one resource, from any host.
type ACL struct {
	Principal    string // "User:alice"
	ResourceType string // "topic", "group", "cluster" or "transactional_id"
	Name         string // the resource's name; "*" for all, "kafka-cluster" for the cluster
	Prefixed     bool   // Name is a prefix of names
	Operation    string // "read", "write", "create", "describe", "all", …, in Kafka's words
}

var errNotSecure = errors.New("kafkatest: the cluster was started without Secure")

// SecureBootstrap returns the addresses for TLS and SCRAM, separated by commas, or "" unless the cluster was
// started with Secure.
func (c *Cluster) SecureBootstrap() string {
	if c.authority == nil {
		return ""
	}
	return c.bootstrap(secureListener)
}

// CAPEM returns the certificate that the brokers' certificates are signed with,
// for librdkafka's ssl.ca.pem, or "" unless the cluster was started with Secure.
func (c *Cluster) CAPEM() string {
	if c.authority == nil {
		return ""
	}
	return c.authority.caPEM
}

// scram is a SCRAM mechanism: its number in Kafka (KIP-554) and its hash.
type scram struct {
	number int8
	hash   func() hash.Hash
	size   int
}

var scramSHA256, scramSHA512 = scram{1, sha256.New, sha256.Size}, scram{2, sha512.New, sha512.Size}

// AddUser creates a user for SCRAM-SHA-512 and SCRAM-SHA-256, or sets its password. It returns when every broker
// knows it. All brokers must be up.
func (c *Cluster) AddUser(ctx context.Context, name, password string) error {
	if c.authority == nil {
		return errNotSecure
	}
	for _, by := range []scram{scramSHA256, scramSHA512} { // KRaft accepts only one mechanism of a user at a time
		if err := c.addUser(ctx, name, password, by); err != nil {
			return fmt.Errorf("kafkatest: adding user %s: %w", name, err)
		}
	}
	return c.everyBroker(ctx, "waiting until it knows user "+name, func(ctx context.Context, b *Broker) error {
		req := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
		req.Users = []kmsg.DescribeUserSCRAMCredentialsRequestUser{{Name: name}}
		resp, err := b.ask(ctx, req)
		if err != nil {
			return err
		}
		for _, result := range resp.(*kmsg.DescribeUserSCRAMCredentialsResponse).Results {
			if err := refused(result.ErrorCode, result.ErrorMessage); err != nil {
				return err
			}
			if len(result.CredentialInfos) < 2 {
				return errors.New("it knows one of two mechanisms")
			}
		}
		return nil
	})
}

func (c *Cluster) addUser(ctx context.Context, name, password string, by scram) error {
	const iterations = 4096
	var salt [16]byte
	_, _ = rand.Read(salt[:]) // never fails
	salted, err := pbkdf2.Key(by.hash, password, salt[:], iterations, by.size)
	if err != nil {
		return err
	}
	req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	req.Upsertions = []kmsg.AlterUserSCRAMCredentialsRequestUpsertion{{
		Name: name, Mechanism: by.number, Iterations: iterations, Salt: salt[:], SaltedPassword: salted,
	}}
	resp, err := c.ask(ctx, req)
	if err == nil {
		for _, result := range resp.(*kmsg.AlterUserSCRAMCredentialsResponse).Results {
			err = errors.Join(err, refused(result.ErrorCode, result.ErrorMessage))
		}
	}
	return err
}

// Allow adds ACLs, and returns when every broker knows them. All brokers must be up.
func (c *Cluster) Allow(ctx context.Context, acls ...ACL) error {
	if c.authority == nil {
		return errNotSecure
	}
	req := kmsg.NewPtrCreateACLsRequest()
	for _, acl := range acls {
		f, err := acl.filter()
		if err != nil {
			return err
		}
		req.Creations = append(req.Creations, kmsg.CreateACLsRequestCreation{
			ResourceType: f.ResourceType, ResourceName: acl.Name, ResourcePatternType: f.ResourcePatternType,
			Principal: acl.Principal, Host: "*",
			Operation: f.Operation, PermissionType: f.PermissionType,
		})
	}
	resp, err := c.ask(ctx, req)
	if err == nil {
		for _, result := range resp.(*kmsg.CreateACLsResponse).Results {
			err = errors.Join(err, refused(result.ErrorCode, result.ErrorMessage))
		}
	}
	if err != nil {
		return fmt.Errorf("kafkatest: adding ACLs: %w", err)
	}
	return c.waitACLs(ctx, acls, true)
}

// Revoke removes ACLs, and returns when every broker knows. It ignores ACLs that do not exist. All brokers must
// be up.
func (c *Cluster) Revoke(ctx context.Context, acls ...ACL) error {
	if c.authority == nil {
		return errNotSecure
	}
	req := kmsg.NewPtrDeleteACLsRequest()
	for _, acl := range acls {
		f, err := acl.filter()
		if err != nil {
			return err
		}
		req.Filters = append(req.Filters, f)
	}
	resp, err := c.ask(ctx, req)
	if err == nil {
		for _, result := range resp.(*kmsg.DeleteACLsResponse).Results {
			err = errors.Join(err, refused(result.ErrorCode, result.ErrorMessage))
		}
	}
	if err != nil {
		return fmt.Errorf("kafkatest: revoking ACLs: %w", err)
	}
	return c.waitACLs(ctx, acls, false)
}

// waitACLs waits until every broker has, or has not, each of acls.
func (c *Cluster) waitACLs(ctx context.Context, acls []ACL, want bool) error {
	return c.everyBroker(ctx, "waiting until it knows the ACLs", func(ctx context.Context, b *Broker) error {
		for _, acl := range acls {
			f, err := acl.filter()
			if err != nil {
				return stop{err}
			}
			req := kmsg.NewPtrDescribeACLsRequest()
			req.ResourceType, req.ResourceName, req.ResourcePatternType = f.ResourceType, f.ResourceName, f.ResourcePatternType
			req.Principal, req.Host, req.Operation, req.PermissionType = f.Principal, f.Host, f.Operation, f.PermissionType
			resp, err := b.ask(ctx, req)
			if err != nil {
				return err
			}
			described := resp.(*kmsg.DescribeACLsResponse)
			if err := refused(described.ErrorCode, described.ErrorMessage); err != nil {
				return err
			}
			if has := len(described.Resources) > 0; has != want {
				return fmt.Errorf("%+v: it has it: %v", acl, has)
			}
		}
		return nil
	})
}

// filter returns a filter that matches only this ACL.
func (a ACL) filter() (kmsg.DeleteACLsRequestFilter, error) {
	f := kmsg.NewDeleteACLsRequestFilter()
	resource, err := kmsg.ParseACLResourceType(a.ResourceType)
	if err != nil {
		return f, fmt.Errorf("kafkatest: ACL %+v: %w", a, err)
	}
	operation, err := kmsg.ParseACLOperation(a.Operation)
	if err != nil {
		return f, fmt.Errorf("kafkatest: ACL %+v: %w", a, err)
	}
	f.ResourceType, f.Operation = resource, operation
	f.ResourcePatternType = kmsg.ACLResourcePatternTypeLiteral
	if a.Prefixed {
		f.ResourcePatternType = kmsg.ACLResourcePatternTypePrefixed
	}
	f.PermissionType = kmsg.ACLPermissionTypeAllow
	f.ResourceName, f.Principal, f.Host = new(a.Name), new(a.Principal), new("*")
	return f, nil
}

// ask sends a request to the broker that handles it.
func (c *Cluster) ask(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	client, err := c.client(c.addrs()...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return client.Request(ctx, req)
}

// everyBroker polls each broker in turn.
func (c *Cluster) everyBroker(ctx context.Context, doing string, attempt func(context.Context, *Broker) error) error {
	for _, b := range c.brokers {
		err := b.poll(ctx, doing, func(ctx context.Context) error { return attempt(ctx, b) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) addrs() []string {
	var addrs []string
	for _, b := range c.brokers {
		addrs = append(addrs, b.Addr)
	}
	return addrs
}

// refused returns the error of a response's code and message.
func refused(code int16, message *string) error {
	err := kerr.ErrorForCode(code)
	if err != nil && message != nil {
		return fmt.Errorf("%w: %s", err, *message)
	}
	return err
}

// Kerberos is what a broker needs of a realm.
type Kerberos struct {
	Config    string // file: krb5.conf, which names the realm and its key distribution centre
	Keytab    string // file: the key of Principal
	Principal string // service/host@REALM; the host is the one that clients connect to, such as 127.0.0.1
}

// KerberosBootstrap returns the addresses for logins with Kerberos, separated by commas, or "" unless the cluster
// was started with Kerberos.
func (c *Cluster) KerberosBootstrap() string {
	if c.opts.Kerberos == nil {
		return ""
	}
	return c.bootstrap(kerberosListener)
}

// properties returns the settings of the listener for Kerberos.
func (k *Kerberos) properties() map[string]string {
	const listener = "listener.name.kerberos."
	service, _, _ := strings.Cut(k.Principal, "/")
	return map[string]string{
		listener + "sasl.enabled.mechanisms":    "GSSAPI",
		listener + "sasl.kerberos.service.name": service,
		listener + "gssapi.sasl.jaas.config": fmt.Sprintf("com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "+
			"keyTab=%q principal=%q;", k.Keytab, k.Principal),
	}
}

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
