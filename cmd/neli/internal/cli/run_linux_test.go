package cli

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/kafka"
)

// fetching is a provider whose clients get tokens by themselves.
type fetching struct {
	kafka.Provider
	failed func(error)
}

func (f *fetching) WithLogin(l kafka.Login) kafka.Provider {
	f.failed = l.Failed
	return f.Provider
}

func TestBadDurationsOfRun(t *testing.T) {
	for want, flag := range map[string]string{"--drain -1s: must be positive": "--drain=-1s", "--wait -1s: must not be negative": "--wait=-1s",
		"--wait 3s: must be at least 10s, twice --timeout: after a crash of the leader's host nobody may lead before a lease of 5s is over, " +
			"and each run begins to wait anew; give --wait 10s or a shorter --timeout": "--wait=3s"} {
		var errs strings.Builder
		require.Equal(t, codeFailure, Main([]string{"run", "--group", "g", flag, "--", "true"}, io.Discard, &errs))
		require.Equal(t, "neli: "+want+"\n", errs.String())
	}
}

func TestRunRefusesBadAddress(t *testing.T) {
	var errs strings.Builder
	require.Equal(t, codeFailure, Main([]string{"run", "--group", "g", "--advertise", "10.0.0.7", "--", "true"}, io.Discard, &errs))
	require.Contains(t, errs.String(), "neli: --advertise: \"10.0.0.7\" must be host:port")
}

// When a token endpoint refuses, neli run counts a failure and logs it, as docs/security.md says.
func TestRunCountsFailuresToGetAToken(t *testing.T) {
	clients := &fetching{Provider: franz.Provider()}
	n, err := neli.New(neli.Config{Provider: &watchedProvider{Provider: clients}, LeaderGroupID: "g",
		KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": "127.0.0.1:1"}})
	require.NoError(t, err)
	defer n.Close()
	require.NotNil(t, clients.failed, "neli run keeps failures from the library")
	clients.failed(errors.New("not today"))
	require.EqualValues(t, 1, n.Stats().LoginFailures)
}
