package franz

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/goneli/neli/kafka"
)

// Cluster implements kafka.ClusterDescriber. Brokers do not report their version, so it is guessed from
// the requests that one of them supports.
func (a *admin) Cluster(ctx context.Context) (info kafka.ClusterInfo, err error) {
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Topics = []kmsg.MetadataRequestTopic{} // no topics; nil would ask for all
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
