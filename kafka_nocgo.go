//go:build !cgo

package neli

import "errors"

// defaultProvider has nothing to offer without cgo: confluent-kafka-go is
// librdkafka, which is written in C.
func defaultProvider() (Provider, error) {
	return nil, errors.New("this binary was built without cgo and so has no Kafka client: build with CGO_ENABLED=1 and a C compiler, or set Config.Provider")
}
