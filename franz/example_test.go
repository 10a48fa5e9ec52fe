package franz_test

import (
	"log"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli"
	"github.com/goneli/neli/franz"
)

// Options of franz-go can replace KafkaConfig, or be used with it.
func ExampleProvider() {
	n, err := neli.New(neli.Config{
		LeaderGroupID: "invoicing",
		Provider:      franz.Provider(kgo.SeedBrokers("kafka-1:9092", "kafka-2:9092")),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close()
}
