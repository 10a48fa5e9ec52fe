package franz

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/goneli/neli/kafka"
)

// Cluster implements kafka.Identifier. Brokers do not tell their version: it is guessed from
// the requests that one of them understands.
func (a *admin) Cluster(ctx context.Context) (info kafka.ClusterInfo, err error) {
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Topics = []kmsg.MetadataRequestTopic{} // of none, not of all
	err = ask(ctx, a, "describe cluster", metadata, func(resp *kmsg.MetadataResponse) error {
		if resp.ClusterID != nil {
			info.ID = *resp.ClusterID
		}
		for _, b := range resp.Brokers {
			info.Hosts = append(info.Hosts, b.Host)
		}
		return nil
	})
	if err != nil {
		return info, err
	}
	err = ask(ctx, a, "ask for versions", kmsg.NewPtrApiVersionsRequest(), func(resp *kmsg.ApiVersionsResponse) error {
		info.Version = kversion.FromApiVersionsResponse(resp).VersionGuess()
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	return info, err
}
