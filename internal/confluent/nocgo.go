//go:build !cgo || neli_nolibrdkafka

package confluent

import (
	"errors"

	"github.com/goneli/neli/kafka"
)

// New returns an error: librdkafka, which is written in C, is missing.
func New() (kafka.Provider, error) {
	return nil, errors.New("this binary was built without cgo, or with the tag neli_nolibrdkafka, and so has no Kafka client of its own: " +
		"set Config.Provider to that of github.com/goneli/neli/franz, which is written in Go; " +
		"or build with CGO_ENABLED=1 and a C compiler, and without the tag")
}
