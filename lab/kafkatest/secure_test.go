package kafkatest

import (
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The client is librdkafka, since the listener is for librdkafka.
func TestSecure(t *testing.T) {
	c := Run(t, Options{Secure: true})
	createTopic(t, c, "things")
	require.NoError(t, c.AddUser(t.Context(), "alice", "wonderland"))

	produceAs := func(password string) error {
		p, err := kafka.NewProducer(&kafka.ConfigMap{
			"bootstrap.servers":  c.SecureBootstrap(),
			"security.protocol":  "SASL_SSL",
			"ssl.ca.pem":         c.CAPEM(),
			"sasl.mechanism":     "SCRAM-SHA-512",
			"sasl.username":      "alice",
			"sasl.password":      password,
			"message.timeout.ms": 50_000, // a login must not take longer, or the answer would be that time-out
			"log_level":          0,
		})
		require.NoError(t, err)
		defer p.Close()
		delivered := make(chan kafka.Event, 1)
		topic := "things"
		require.NoError(t, p.Produce(&kafka.Message{
			TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: 0}, Value: []byte("one"),
		}, delivered))
		deadline := time.After(patience)
		for {
			select {
			case e := <-delivered:
				return e.(*kafka.Message).TopicPartition.Error
			case e := <-p.Events():
				if err, ok := e.(kafka.Error); ok && err.Code() == kafka.ErrAuthentication {
					return err
				}
			case <-deadline:
				t.Fatal("no delivery report")
			}
		}
	}
	code := func(err error) kafka.ErrorCode {
		kafkaError, _ := err.(kafka.Error)
		return kafkaError.Code()
	}

	assert.Equal(t, kafka.ErrAuthentication, code(produceAs("looking glass")))
	assert.Equal(t, kafka.ErrTopicAuthorizationFailed, code(produceAs("wonderland")))

	write := ACL{Principal: "User:alice", ResourceType: "topic", Name: "thi", Prefixed: true, Operation: "write"}
	require.NoError(t, c.Allow(t.Context(), write))
	assert.NoError(t, produceAs("wonderland"))
	assert.Equal(t, "one", consume(t, c, "things"), "the plain listener is a super user's")

	require.NoError(t, c.Revoke(t.Context(), write))
	assert.Equal(t, kafka.ErrTopicAuthorizationFailed, code(produceAs("wonderland")))

	assert.ErrorContains(t, c.Allow(t.Context(), ACL{ResourceType: "teapot"}), "teapot")
}
