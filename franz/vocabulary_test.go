package franz

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
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

// Only the brackets at the end of an answer name what a program in Go can do. The command neli leaves them out.
func TestAnswersMentionGoOnlyInBrackets(t *testing.T) {
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

// librdkafka skips empty entries of bootstrap.servers and accepts protocol://host:port, if the
// protocol is that of security.protocol. An empty entry must not stand for this machine.
func TestBootstrapServersAsLibrdkafkaReadsThem(t *testing.T) {
	for servers, want := range map[string][]string{
		"a:1,":                           {"a:1"},
		"a:1,,b:2":                       {"a:1", "b:2"},
		" a:1 , b ":                      {"a:1", "b"},
		"PLAINTEXT://a:1,plaintext://b/": {"a:1", "b"},
		"PLAINTEXT://a:1, b:2,[::1]":     {"a:1", "b:2", "[::1]"},
	} {
		_, k := made(t, forProducer, map[string]string{"bootstrap.servers": servers})
		require.Equal(t, want, k.OptValue(kgo.SeedBrokers), servers)
	}
	_, err := parse(forProducer, map[string]string{"bootstrap.servers": "a:1,SSL://b:2"})
	require.ErrorContains(t, err, "bootstrap.servers: ssl:// does not match security.protocol=plaintext")
	_, err = parse(forProducer, map[string]string{"bootstrap.servers": "SSL://b:2", "security.protocol": "SSL"})
	require.NoError(t, err)
}

// A member without group.protocol=consumer uses the classic protocol and its strategy, whatever
// group.remote.assignor says, as with librdkafka.
func TestTheRemoteAssignorDoesNotChooseTheProtocol(t *testing.T) {
	for _, protocol := range []string{"", "classic"} {
		_, k := made(t, forGroup, map[string]string{"group.protocol": protocol, "group.remote.assignor": "range", "partition.assignment.strategy": "cooperative-sticky"})
		require.Equal(t, false, k.OptValue(kgo.ServerSideBalancer), protocol)
		require.Equal(t, []string{"cooperative-sticky"}, strategies(nil, k), protocol)
	}
	// librdkafka refuses this, too.
	_, err := parse(forGroup, map[string]string{"group.id": "g", "group.protocol": "consumer", "partition.assignment.strategy": "range"})
	require.ErrorContains(t, err, "partition.assignment.strategy: has no effect with group.protocol=consumer")
}

// A level means the same as with librdkafka, as far as the codec has levels. franz-go silently
// ignores a number that its codec's package does not know: lz4 counts 1<<(8+n), zstd has four levels.
func TestCompressionLevels(t *testing.T) {
	for name, levels := range map[string]map[int]kgo.CompressionCodec{
		"gzip": {1: kgo.GzipCompression().WithLevel(1), 9: kgo.GzipCompression().WithLevel(9), 12: kgo.GzipCompression().WithLevel(9)},
		"lz4":  {1: kgo.Lz4Compression().WithLevel(1 << 9), 9: kgo.Lz4Compression().WithLevel(1 << 17), 12: kgo.Lz4Compression().WithLevel(1 << 17)},
		"zstd": {1: kgo.ZstdCompression().WithLevel(1), 3: kgo.ZstdCompression().WithLevel(2),
			9: kgo.ZstdCompression().WithLevel(3), 12: kgo.ZstdCompression().WithLevel(4)},
	} {
		for level, want := range levels {
			_, k := made(t, forProducer, map[string]string{"compression.type": name, "compression.level": fmt.Sprint(level)})
			require.Equal(t, []kgo.CompressionCodec{want}, k.OptValue(kgo.ProducerBatchCompression), "%s %d", name, level)
		}
	}
}
