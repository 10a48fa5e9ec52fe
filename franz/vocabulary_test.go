package franz

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The names of librdkafka 2.15.0's CONFIGURATION.md, and those of Kafka 4.3.1's ProducerConfig, ConsumerConfig and AdminClientConfig
// (which include those of CommonClientConfigs, SslConfigs and SaslConfigs).
var (
	//go:embed testdata/librdkafka.txt
	librdkafkaNames string
	//go:embed testdata/java.txt
	javaNames string
)

// Each name of either vocabulary has an answer: it has an effect, or it has none for a stated reason, or an error says
// what to write instead.
func TestEachNameOfBothVocabulariesHasAnAnswer(t *testing.T) {
	for name := range strings.FieldsSeq(librdkafkaNames + javaNames) {
		answer := hint(name)
		if p := known(name); p != nil {
			answer = p.means
		}
		assert.NotContains(t, answer, "is not known", name)
	}
}

// An answer names what a program in Go can do only in brackets at its end, which the command neli leaves out.
func TestAnswersNameGoOnlyInBrackets(t *testing.T) {
	for _, r := range refused {
		text, in, _ := strings.Cut(r.why, " (in Go: ")
		assert.NotRegexp(t, `kgo\.|franz\.|Config\.`, text)
		assert.True(t, in == "" || strings.HasSuffix(in, ")") && !strings.ContainsAny(in[:len(in)-1], "()"), r.why)
	}
}

// A certificate may be joined into one line, as files of properties and arguments need it.
func TestCertificateInOneLine(t *testing.T) {
	const want = "-----BEGIN CERTIFICATE-----\nAAA\nBBB=\n-----END CERTIFICATE-----\n"
	for _, given := range []string{want, strings.TrimSpace(want), strings.ReplaceAll(want, "\n", `\n`)} {
		assert.Equal(t, want, lines(given))
	}
	assert.Equal(t, "-----BEGIN RSA PRIVATE KEY-----\nAAA BBB=\n-----END RSA PRIVATE KEY-----\n", lines("-----BEGIN RSA PRIVATE KEY----- AAA BBB= -----END RSA PRIVATE KEY-----"))
	assert.Equal(t, "nothing of the kind", lines("nothing of the kind"))
}
