package kafkatest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// An authority is one secure cluster's own certificate authority, and the server certificate that all its brokers use.
type authority struct {
	ca       *x509.Certificate
	key      *ecdsa.PrivateKey
	caPEM    string
	keystore string // file: the brokers' key and certificate
	trust    string // file: the authority's certificate
}

// newAuthority writes its files to dir.
func newAuthority(dir string) (*authority, error) {
	a := &authority{keystore: filepath.Join(dir, "server.pem"), trust: filepath.Join(dir, "ca.pem")}
	serverPEM, err := a.certify(time.Now())
	if err != nil {
		return nil, fmt.Errorf("kafkatest: making certificates: %w", err)
	}
	if err := os.WriteFile(a.trust, []byte(a.caPEM), 0o644); err != nil {
		return nil, err
	}
	return a, os.WriteFile(a.keystore, serverPEM, 0o600)
}

// MTLSBootstrap returns the addresses for TLS with a client certificate, separated by commas, or "" unless the
// cluster was started with Secure. A client's principal there is User:CN=name.
func (c *Cluster) MTLSBootstrap() string {
	if c.authority == nil {
		return ""
	}
	return c.bootstrap(mtlsListener)
}

// ClientCertificate returns a certificate for MTLSBootstrap, and its key, both in PEM, or an error
// unless the cluster was started with Secure.
func (c *Cluster) ClientCertificate(name string) (certificate, key string, err error) {
	if c.authority == nil {
		return "", "", errNotSecure
	}
	keyPEM, certPEM, err := c.authority.sign(&x509.Certificate{
		SerialNumber: big.NewInt(3),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    c.authority.ca.NotBefore,
		NotAfter:     c.authority.ca.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return string(certPEM), string(keyPEM), err
}

// certify makes the authority's certificate and, signed by it, the server's
// together with its key, both valid for a day around now.
func (a *authority) certify(now time.Time) (serverPEM []byte, err error) {
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	a.ca = &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "kafkatest authority"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(23 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, a.ca, a.ca, a.key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	a.caPEM = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}))
	keyPEM, certPEM, err := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "kafkatest broker"},
		NotBefore:    a.ca.NotBefore,
		NotAfter:     a.ca.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	return append(keyPEM, certPEM...), err
}

// sign makes a key, and signs a certificate for it.
func (a *authority) sign(of *x509.Certificate) (keyPEM, certPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	certDER, err := x509.CreateCertificate(rand.Reader, of, a.ca, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certDER}), nil
}

// properties returns the settings of a secure cluster, without the listener's addresses.
func (a *authority) properties() map[string]string {
	const listener, mtls = "listener.name.sasl_ssl.", "listener.name.mtls."
	return map[string]string{
		listener + "ssl.keystore.type":              "PEM",
		listener + "ssl.keystore.location":          a.keystore,
		listener + "ssl.truststore.type":            "PEM",
		listener + "ssl.truststore.location":        a.trust,
		mtls + "ssl.keystore.type":                  "PEM",
		mtls + "ssl.keystore.location":              a.keystore,
		mtls + "ssl.truststore.type":                "PEM",
		mtls + "ssl.truststore.location":            a.trust,
		mtls + "ssl.client.auth":                    "required",
		listener + "sasl.enabled.mechanisms":        "SCRAM-SHA-512,SCRAM-SHA-256",
		listener + "scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
		listener + "scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"authorizer.class.name":                     "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":                               "User:ANONYMOUS", // this package's admin clients, and the brokers themselves
		"allow.everyone.if.no.acl.found":            "false",
	}
}
