package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/release/internal/repo"
)

func TestEveryModuleInABuildHasAKnownLicence(t *testing.T) {
	r, err := repo.Here()
	require.NoError(t, err)
	text, err := notice(r)
	require.NoError(t, err)
	for _, module := range []string{"confluent-kafka-go", "franz-go", "librdkafka", "cobra", "pgx"} {
		require.Contains(t, string(text), module)
	}
}
