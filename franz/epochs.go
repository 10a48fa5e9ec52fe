package franz

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// KeepsEpochs implements kafka.EpochKeeper. Only brokers of a cluster with KRaft answer questions about its
// quorum, or have a metadata version. It needs no right.
func (a *admin) KeepsEpochs(ctx context.Context) (keeps bool, err error) {
	err = ask(ctx, a, "ask for versions", kmsg.NewPtrApiVersionsRequest(), func(resp *kmsg.ApiVersionsResponse) error {
		for _, k := range resp.ApiKeys {
			keeps = keeps || k.ApiKey == int16(kmsg.DescribeQuorum)
		}
		for _, f := range resp.FinalizedFeatures {
			keeps = keeps || f.Name == "metadata.version"
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	return keeps && err == nil, err
}
