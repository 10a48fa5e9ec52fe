package franz

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// security is what the properties say about TLS and SASL.
type security struct {
	protocol         string
	verify, identify bool // whether to verify the broker's certificate, and its name

	ca, caFile                   string
	certificate, certificateFile string
	key, keyFile                 string

	mechanism, user, password string
	bearer                    bearerSettings
	oidc                      *oidc // nil: not sasl.oauthbearer.method=oidc

	loaded    *tls.Config
	mechanics sasl.Mechanism
}

// load reads files and checks that the properties fit together. Its errors do not show the contents of files.
func (s *security) load(given []sasl.Mechanism) error {
	var faults []error
	if strings.HasSuffix(s.protocol, "ssl") {
		s.loaded = &tls.Config{MinVersion: tls.VersionTLS12}
		faults = append(faults, s.loadCA(), s.loadCertificate())
		s.verification()
	}
	if strings.HasPrefix(s.protocol, "sasl") {
		faults = append(faults, s.loadMechanism(), s.without(given))
	}
	if faults = slices.DeleteFunc(faults, func(err error) bool { return err == nil }); len(faults) > 0 {
		return errors.Join(faults...)
	}
	return nil
}

// unused finds properties of tokens that would have no effect. Package neli finds unused properties of
// other protocols.
func (s *security) unused(props map[string]string) error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(props)) {
		token := strings.HasPrefix(name, "sasl.oauthbearer.") || strings.HasPrefix(name, "https.")
		if token && s.mechanism != "OAUTHBEARER" && props[name] != "" && known(name) != nil { // unknown ones are refused in any case
			faults = append(faults, fmt.Errorf("%s: has no effect with sasl.mechanism=%s", name, s.mechanism))
		}
	}
	return errors.Join(faults...)
}

func (s *security) opts() (opts []kgo.Opt) {
	if s.loaded != nil {
		opts = append(opts, kgo.DialTLSConfig(s.loaded))
	}
	if s.mechanics != nil {
		opts = append(opts, kgo.SASL(s.mechanics))
	}
	return opts
}

// loadCA reads the certificates to trust: the system's, unless others are given.
func (s *security) loadCA() error {
	if s.ca == "" && (s.caFile == "" || s.caFile == "probe") {
		return nil
	}
	pool := x509.NewCertPool()
	if s.ca != "" && !pool.AppendCertsFromPEM([]byte(lines(s.ca))) {
		return errors.New("ssl.ca.pem: holds no certificate")
	}
	if s.caFile != "" && s.caFile != "probe" {
		if err := addFiles(pool, s.caFile); err != nil {
			return fmt.Errorf("ssl.ca.location: %w", err)
		}
	}
	s.loaded.RootCAs = pool
	return nil
}

// addFiles adds the certificates of a file, or of all files of a directory.
func addFiles(pool *x509.CertPool, path string) error {
	files := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		files = nil
		for _, entry := range entries {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	found := false
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil && len(files) == 1 {
			return err
		}
		found = pool.AppendCertsFromPEM(content) || found
	}
	if !found {
		return fmt.Errorf("%s holds no certificate", path)
	}
	return nil
}

// loadCertificate reads this client's certificate.
func (s *security) loadCertificate() error {
	certificate, err := content("ssl.certificate", s.certificate, s.certificateFile)
	if err != nil {
		return err
	}
	key, err := content("ssl.key", s.key, s.keyFile)
	if err != nil {
		return err
	}
	switch {
	case len(certificate) == 0 && len(key) == 0:
		return nil
	case len(certificate) == 0:
		return errors.New("ssl.key: has no ssl.certificate.pem or ssl.certificate.location")
	case len(key) == 0:
		return errors.New("ssl.certificate: has no ssl.key.pem or ssl.key.location")
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		// The standard library's errors say what is wrong without showing the contents.
		return fmt.Errorf("ssl.certificate and ssl.key: %w", err)
	}
	if s.certificate == "" && s.key == "" {
		files := &renewed{certificate: s.certificateFile, key: s.keyFile}
		files.last.Store(&pair)
		s.loaded.GetClientCertificate = files.get
		return nil
	}
	s.loaded.Certificates = []tls.Certificate{pair}
	return nil
}

// renewed is a certificate whose files are replaced now and then. Each connection uses the present files.
type renewed struct {
	certificate, key string // files
	last             atomic.Pointer[tls.Certificate]
}

// get reads the files. If they cannot be read, or do not fit each other because only one was
// replaced so far, it returns the last pair that did fit. The broker decides whether that pair is
// still good.
func (r *renewed) get(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if pair, err := tls.LoadX509KeyPair(r.certificate, r.key); err == nil {
		r.last.Store(&pair)
	}
	return r.last.Load(), nil
}

// marks are the lines that begin and end something in PEM format.
var marks = regexp.MustCompile(`\s*(-----(?:BEGIN|END) [A-Z0-9 ]+-----)\s*`)

// lines returns a value in PEM format with its marks on lines of their own. A file of properties or an
// argument may have all in one line, joined by spaces or by \n as it is written.
func lines(pem string) string {
	return strings.TrimPrefix(marks.ReplaceAllString(strings.ReplaceAll(pem, `\n`, "\n"), "\n$1\n"), "\n")
}

func content(name, value, file string) ([]byte, error) {
	if value != "" || file == "" {
		return []byte(lines(value)), nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s.location: %w", name, err)
	}
	if len(b) == 0 { // it would count as not set
		return nil, fmt.Errorf("%s.location: %s is empty", name, file)
	}
	return b, nil
}

// verification turns off checks that properties turn off. The standard library verifies chain and
// name together or neither, so the chain alone is verified here.
func (s *security) verification() {
	s.loaded.InsecureSkipVerify = !s.verify || !s.identify
	if s.verify && !s.identify {
		roots := s.loaded.RootCAs
		s.loaded.VerifyConnection = func(state tls.ConnectionState) error {
			chain := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
			for _, c := range state.PeerCertificates[1:] {
				chain.Intermediates.AddCert(c)
			}
			_, err := state.PeerCertificates[0].Verify(chain)
			if err != nil {
				return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
			}
			return nil
		}
	}
}

// byProperties are the mechanisms that need only a name and a password.
var byProperties = []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}

// without returns an error if neither the properties nor the mechanisms given by options suffice.
func (s *security) without(given []sasl.Mechanism) error {
	has := func(m sasl.Mechanism) bool { return m.Name() == s.mechanism }
	switch {
	case s.mechanism == "" && len(given) > 0, slices.ContainsFunc(given, has), slices.Contains(byProperties, s.mechanism):
		return nil
	case s.mechanism == "":
		return errors.New("sasl.mechanism: is needed with security.protocol=" + s.protocol)
	case s.mechanism == "OAUTHBEARER" && s.bearer.method == "oidc":
		return nil
	case s.mechanism == "OAUTHBEARER":
		return errors.New("sasl.mechanism=OAUTHBEARER: needs sasl.oauthbearer.method=oidc (in Go: or Config.LoginToken)")
	}
	why := "give kgo.SASL to franz.Provider for another one"
	switch s.mechanism {
	case "AWS_MSK_IAM":
		why = "give kgo.SASL of iam.Mechanism in github.com/goneli/neli/franz/iam to franz.Provider"
	case "GSSAPI":
		why = "give kgo.SASL of github.com/twmb/franz-go/pkg/sasl/kerberos to franz.Provider"
	}
	return fmt.Errorf("sasl.mechanism=%s: must be PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER (in Go: %s)", s.mechanism, why)
}

func (s *security) loadMechanism() error {
	switch s.mechanism {
	case "PLAIN":
		s.mechanics = plain.Auth{User: s.user, Pass: s.password}.AsMechanism()
	case "SCRAM-SHA-256":
		s.mechanics = scram.Auth{User: s.user, Pass: s.password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		s.mechanics = scram.Auth{User: s.user, Pass: s.password}.AsSha512Mechanism()
	case "OAUTHBEARER":
		var err error
		if s.bearer.method == "oidc" {
			s.oidc, err = s.bearer.load()
		}
		return err
	default:
		return nil // then an option must give it
	}
	if s.user == "" || s.password == "" {
		return fmt.Errorf("sasl.mechanism=%s: needs sasl.username and sasl.password", s.mechanism)
	}
	return nil
}
