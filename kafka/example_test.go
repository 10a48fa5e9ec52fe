package kafka_test

import (
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// counting is a Provider that counts the records that are read, and passes everything else on to another Provider.
type counting struct {
	kafka.Provider
	read chan struct{}
}

func (c counting) LogReader(props map[string]string, log *slog.Logger) (kafka.LogReader, error) {
	r, err := c.Provider.LogReader(props, log)
	return countingReader{r, c.read}, err
}

type countingReader struct {
	kafka.LogReader
	read chan struct{}
}

func (r countingReader) Poll(timeout time.Duration) (kafka.Record, bool, error) {
	record, ok, err := r.LogReader.Poll(timeout)
	if ok {
		select {
		case r.read <- struct{}{}:
		default:
		}
	}
	return record, ok, err
}

// A Provider around another one sees everything that passes between the library and its broker.
// Properties reach it complete, and it passes them on.
func ExampleProvider() {
	around := counting{nelitest.NewBroker(nelitest.Options{}).Provider("a"), make(chan struct{}, 1)}
	n, err := neli.New(neli.Config{LeaderGroupID: "invoices", HeartbeatTimeout: 2 * time.Second, Provider: around})
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close()
	<-around.read
	fmt.Println("a record was read")
	// Output: a record was read
}

// ConfigMap uses librdkafka's names, whichever client runs. neli.KafkaConfigMap is the same type.
func ExampleConfigMap() {
	var props neli.KafkaConfigMap = kafka.ConfigMap{
		"bootstrap.servers": "kafka-1:9093,kafka-2:9093",
		"security.protocol": "SASL_SSL",
		"sasl.mechanism":    "SCRAM-SHA-512",
		"sasl.username":     "invoicing",
	}
	fmt.Println(len(props), "properties")
	// Output: 4 properties
}

// errors.Is tells the kinds of errors apart. A missing right on a topic is an ErrAuthorization, and
// names its resource.
func ExampleErrAuthorization() {
	fmt.Println(errors.Is(kafka.ErrTopicAuthorization, kafka.ErrAuthorization))
	fmt.Println(errors.Is(kafka.ErrTopicAuthorization, kafka.ErrAuthentication))
	// Output:
	// true
	// false
}
