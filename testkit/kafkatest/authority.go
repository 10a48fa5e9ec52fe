package kafkatest

import (
	"bytes"
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

// An authority is a certificate authority of its own for one secure cluster, and
// the one server certificate that all its brokers use. Its own key is thrown away
// once it has signed.
type authority struct {
	caPEM    string
	keystore string // file: the brokers' key and certificate
	trust    string // file: the authority's certificate
}

// newAuthority writes its files to dir.
func newAuthority(dir string) (*authority, error) {
	a := &authority{keystore: filepath.Join(dir, "server.pem"), trust: filepath.Join(dir, "ca.pem")}
	caPEM, serverPEM, err := certify(time.Now())
	if err != nil {
		return nil, fmt.Errorf("kafkatest: making certificates: %w", err)
	}
	a.caPEM = string(caPEM)
	if err := os.WriteFile(a.trust, caPEM, 0o644); err != nil {
		return nil, err
	}
	return a, os.WriteFile(a.keystore, serverPEM, 0o600)
}

// certify makes the authority's certificate and, signed by it, the server's
// together with its key, both valid for a day around now.
func certify(now time.Time) (caPEM, serverPEM []byte, err error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "kafkatest authority"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(23 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return nil, nil, err
	}

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "kafkatest broker"},
		NotBefore:    ca.NotBefore,
		NotAfter:     ca.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, ca, key.Public(), caKey)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}

	var both bytes.Buffer
	_ = pem.Encode(&both, &pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}) // a Buffer takes all
	_ = pem.Encode(&both, &pem.Block{Type: "CERTIFICATE", Bytes: serverDER})
	caPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	return caPEM, both.Bytes(), nil
}

// properties are the settings of a secure cluster, beside the listener's
// addresses.
func (a *authority) properties() map[string]string {
	const listener = "listener.name.sasl_ssl."
	return map[string]string{
		listener + "ssl.keystore.type":              "PEM",
		listener + "ssl.keystore.location":          a.keystore,
		listener + "ssl.truststore.type":            "PEM",
		listener + "ssl.truststore.location":        a.trust,
		listener + "sasl.enabled.mechanisms":        "SCRAM-SHA-512",
		listener + "scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"authorizer.class.name":                     "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":                               "User:ANONYMOUS", // admin clients here, and the brokers themselves
		"allow.everyone.if.no.acl.found":            "false",
	}
}
