package integration

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/kafkatest"
)

// A real broker has a policy that refuses one setting. With both clients the topic gets all other settings, and the missing
// one is logged once.
func TestPolicyThatRefusesASetting(t *testing.T) {
	t.Parallel()
	const refused, words = "segment.ms", "segments are the platform's own"
	classes := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(classes, "Policy.class"), policyClass("Policy", refused, words), 0o644))
	cluster := kafkatest.Run(t, kafkatest.Options{ClassPath: classes, BrokerProps: map[string]string{"create.topic.policy.class.name": "Policy"}})
	admin := newHostileAdmin(t, cluster.Bootstrap())
	for name, provider := range clients {
		t.Run(name, func(t *testing.T) {
			cfg, log := hostileConfig(cluster.Bootstrap(), "policy", func(c *neli.Config) {
				c.Nomination, c.Provider = neli.NominationOpen, provider()
			})
			m := hostileStart(t, cfg, log)
			m.leads(t, patience)
			s := admin.settings(t, cfg.LeaderTopic)
			for setting, want := range map[string]string{"message.timestamp.type": "LogAppendTime", "retention.bytes": "16777216",
				"retention.ms": "604800000", "segment.bytes": "4194304", "cleanup.policy": "delete", "unclean.leader.election.enable": "false"} {
				assert.Equal(t, want, s[setting], setting)
			}
			assert.NotEqual(t, "86400000", s[refused])
			const says = "the cluster refuses a setting of the leader topic"
			saidOnce(t, log, says)
			assert.Len(t, log.with(says, refused, words), len(log.with(says)))
		})
	}
}

// policyClass returns the class file of a CreateTopicPolicy that refuses a setting. It is written by hand, since a machine
// that runs Kafka may not have a compiler:
//
//	public class NAME implements CreateTopicPolicy {
//		public NAME() { super(); }
//		public void configure(Map m) {}
//		public void close() {}
//		public void validate(RequestMetadata r) {
//			if (r.configs().containsKey(SETTING)) throw new PolicyViolationException(WORDS);
//		}
//	}
func policyClass(name, setting, words string) []byte {
	var pool bytes.Buffer
	count := uint16(0) // of constants
	add := func(tag byte, of ...any) uint16 {
		pool.WriteByte(tag)
		for _, v := range of {
			_ = binary.Write(&pool, binary.BigEndian, v) // never fails
		}
		count++
		return count
	}
	text := func(s string) uint16 { return add(1, uint16(len(s)), []byte(s)) }
	class := func(s string) uint16 { return add(7, text(s)) }
	str := func(s string) uint16 { return add(8, text(s)) }
	member := func(tag byte, of uint16, name, kind string) uint16 {
		return add(tag, of, add(12, text(name), text(kind)))
	}
	const method, interfaceMethod = 10, 11

	this, object := class(name), class("java/lang/Object")
	policy, request := class("org/apache/kafka/server/policy/CreateTopicPolicy"), class("org/apache/kafka/server/policy/CreateTopicPolicy$RequestMetadata")
	violation := class("org/apache/kafka/common/errors/PolicyViolationException")
	created := member(method, object, "<init>", "()V")
	configs := member(method, request, "configs", "()Ljava/util/Map;")
	contains := member(interfaceMethod, class("java/util/Map"), "containsKey", "(Ljava/lang/Object;)Z")
	violated := member(method, violation, "<init>", "(Ljava/lang/String;)V")
	refused, why := str(setting), str(words)
	code := text("Code")

	hi := func(n uint16) []byte { return []byte{byte(n >> 8), byte(n)} }
	op := func(b byte, n uint16) []byte { return append([]byte{b}, hi(n)...) }
	var methods bytes.Buffer
	define := func(name, kind string, ops ...[]byte) {
		body := bytes.Join(ops, nil)
		for _, v := range []any{uint16(1), text(name), text(kind), uint16(1), code, uint32(12 + len(body)), uint16(4), uint16(4), uint32(len(body)), body, uint32(0)} {
			_ = binary.Write(&methods, binary.BigEndian, v)
		}
	}
	const load0, load1, ret, dup, throw = 0x2a, 0x2b, 0xb1, 0x59, 0xbf
	define("<init>", "()V", []byte{load0}, op(0xb7, created), []byte{ret})
	define("configure", "(Ljava/util/Map;)V", []byte{ret})
	define("close", "()V", []byte{ret})
	define("validate", "(Lorg/apache/kafka/server/policy/CreateTopicPolicy$RequestMetadata;)V",
		[]byte{load1}, op(0xb6, configs), op(0x13, refused), op(0xb9, contains), []byte{2, 0},
		op(0x99, 14), // if it does not, jump over what follows: 3+3+1+3+3+1
		op(0xbb, violation), []byte{dup}, op(0x13, why), op(0xb7, violated), []byte{throw}, []byte{ret})

	var out bytes.Buffer
	for _, v := range []any{uint32(0xcafebabe), uint16(0), uint16(49), count + 1, pool.Bytes(), // 49: no stack maps
		uint16(0x21), this, object, uint16(1), policy, uint16(0), uint16(4), methods.Bytes(), uint16(0)} {
		_ = binary.Write(&out, binary.BigEndian, v)
	}
	return out.Bytes()
}
