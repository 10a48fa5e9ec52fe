//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/fence"
)

// A broker that cannot tell a topic's settings at the moment ends no relay. One that says what is wrong is believed.
func TestSettingsThatABrokerDoesNotTellAreAskedForAgain(t *testing.T) {
	var answer *kerr.Error
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	defer broker.Close()
	broker.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, of := range req.(*kmsg.DescribeConfigsRequest).Resources {
			r := kmsg.NewDescribeConfigsResponseResource()
			r.ResourceType, r.ResourceName, r.ErrorCode = of.ResourceType, of.ResourceName, answer.Code
			resp.Resources = append(resp.Resources, r)
		}
		return resp, nil, true
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...))
	require.NoError(t, err)
	defer client.Close()
	for code, want := range map[*kerr.Error]error{
		kerr.RequestTimedOut: fence.ErrRefused, kerr.UnknownServerError: fence.ErrRefused,
		kerr.TopicAuthorizationFailed: fence.ErrPermanent, kerr.InvalidTopicException: kerr.InvalidTopicException,
	} {
		answer = code
		_, err := mostBytes(t.Context(), client, "t")
		require.ErrorIs(t, err, want, code.Message)
		require.ErrorIs(t, err, code)
	}
}
