//go:build !cgo || neli_nolibrdkafka

package confluent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
)

// Without librdkafka, neli compiles, and New says what to do.
func TestNewWithoutCgo(t *testing.T) {
	_, err := neli.New(neli.Config{})
	require.ErrorContains(t, err, "CGO_ENABLED=1")
	require.ErrorContains(t, err, "neli_nolibrdkafka")
	require.ErrorContains(t, err, "Config.Provider")
	require.ErrorContains(t, err, "github.com/goneli/neli/franz")
}
