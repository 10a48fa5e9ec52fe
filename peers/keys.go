package peers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// keys are this process's certificate and the CAs that it trusts. Files that have changed are read again.
type keys struct {
	files  TLS
	logger *slog.Logger // set before the first connection

	mu     sync.Mutex
	read   [3]stamp         // of the files when they were last loaded
	cert   *tls.Certificate // replaced as a whole, since handshakes use it without the lock
	roots  *x509.CertPool
	failed error // the error of the last attempt to read them again; the old contents are still used
}

// stamp identifies a version of a file.
type stamp struct {
	changed time.Time
	size    int64
}

func newKeys(files TLS) (*keys, error) {
	k := &keys{files: files, logger: slog.New(slog.DiscardHandler)}
	at, err := k.stat()
	if err == nil {
		err = k.load()
	}
	if err != nil {
		return nil, err
	}
	k.read = at
	return k, nil
}

func (k *keys) stat() (at [3]stamp, err error) {
	for i, name := range []string{k.files.CertFile, k.files.KeyFile, k.files.CAFile} {
		if name == "" {
			return at, errors.New("CertFile, KeyFile and CAFile are all needed")
		}
		info, err := os.Stat(name)
		if err != nil {
			return at, err
		}
		at[i] = stamp{info.ModTime(), info.Size()}
	}
	return at, nil
}

// load reads all three files. On an error it changes nothing.
func (k *keys) load() error {
	cert, err := tls.LoadX509KeyPair(k.files.CertFile, k.files.KeyFile)
	if err != nil {
		return fmt.Errorf("%s, %s: %w", k.files.CertFile, k.files.KeyFile, err)
	}
	if cert.Leaf == nil {
		if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
			return fmt.Errorf("%s: %w", k.files.CertFile, err)
		}
	}
	pem, err := os.ReadFile(k.files.CAFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s: no certificate in it", k.files.CAFile)
	}
	k.cert, k.roots = &cert, roots
	return nil
}

// current returns the contents of the files. If only some were replaced so far, or one is wrong,
// it logs that once, and returns the old contents.
func (k *keys) current() (*tls.Certificate, *x509.CertPool) {
	cert, roots, failed := k.reread()
	if failed != nil {
		k.logger.Warn("certificate files cannot be used: the previous certificates stay in use", "error", failed)
	}
	return cert, roots
}

// reread reads files that have changed. It returns why they are not used, if that is news.
func (k *keys) reread() (cert *tls.Certificate, roots *x509.CertPool, failed error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, err := k.stat()
	if err == nil && at != k.read {
		if err = k.load(); err == nil {
			k.read = at
		}
	}
	if err != nil && (k.failed == nil || k.failed.Error() != err.Error()) {
		failed = err
	}
	k.failed = err
	return k.cert, k.roots, failed
}

// trouble returns why the newest files are not used, nil if they are.
func (k *keys) trouble() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failed
}

func (k *keys) leaf() *x509.Certificate {
	cert, _ := k.current()
	return cert.Leaf
}

// base returns the configuration for both sides: TLS 1.3, since this library is at both ends.
func (k *keys) base() (*tls.Config, *x509.CertPool) {
	cert, roots := k.current()
	return &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}}, roots
}

func (k *keys) server() *tls.Config {
	c, roots := k.base()
	c.ClientCAs, c.ClientAuth = roots, tls.RequireAndVerifyClientCert
	return c
}

// client returns the configuration for connecting to a host that has this name in the list.
func (k *keys) client(name string) *tls.Config {
	c, roots := k.base()
	c.RootCAs, c.ServerName = roots, name
	return c
}

// handshaker makes each connection with the keys that are in the files at that time.
type handshaker struct {
	credentials.TransportCredentials // for Info
	keys                             *keys
	name                             string // the host's; clients only
}

func (k *keys) credentials(name string) credentials.TransportCredentials {
	return &handshaker{credentials.NewTLS(k.client(name)), k, name}
}

func (h *handshaker) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(h.keys.client(h.name)).ClientHandshake(ctx, authority, conn)
}

func (h *handshaker) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(h.keys.server()).ServerHandshake(conn)
}

func (h *handshaker) Clone() credentials.TransportCredentials {
	return &handshaker{h.TransportCredentials.Clone(), h.keys, h.name}
}

// admits returns an error unless the certificate is valid for a host of the list or for a name in Members.
func (k *keys) admits(cert *x509.Certificate, hosts []Host) error {
	for _, h := range hosts {
		if name, err := splitAddress(h.Address); err == nil && cert.VerifyHostname(name) == nil {
			return nil
		}
	}
	if slices.ContainsFunc(k.files.Members, func(m string) bool { return cert.VerifyHostname(m) == nil }) {
		return nil
	}
	return fmt.Errorf("the certificate is for [%s], which is neither a host of the list nor in TLS.Members",
		brief(strings.Join(names(cert), " ")))
}

// names returns the names that a certificate is valid for.
func names(cert *x509.Certificate) []string {
	all := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}
