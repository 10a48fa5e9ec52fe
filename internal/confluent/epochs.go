//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"context"
	"errors"
	"strconv"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// oneBroker is how long one of several brokers may take to describe itself.
const oneBroker = time.Second

// KeepsEpochs implements kafka.EpochKeeper. librdkafka does not tell which requests a broker supports. So
// this asks for a setting that brokers have only with KRaft, one broker after the other until one
// answers. That needs DESCRIBE_CONFIGS on the cluster.
func (a *confluentAdmin) KeepsEpochs(ctx context.Context) (keeps bool, err error) {
	brokers, err := a.Brokers(ctx, false)
	if err != nil {
		return false, err
	}
	for i, b := range brokers {
		asking, cancel := ctx, context.CancelFunc(func() {})
		if i < len(brokers)-1 {
			asking, cancel = context.WithTimeout(ctx, oneBroker)
		}
		keeps, err = a.hasRoles(asking, b.ID)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	return keeps, err
}

// hasRoles reports whether a broker has the setting process.roles.
func (a *confluentAdmin) hasRoles(ctx context.Context, broker int) (bool, error) {
	return confluentAsk(ctx, a, "describe broker "+strconv.Itoa(broker), func(ctx context.Context, timeout ck.AdminOptionRequestTimeout) (has bool, err error) {
		results, err := a.client.DescribeConfigs(ctx, []ck.ConfigResource{{Type: ck.ResourceBroker, Name: strconv.Itoa(broker)}}, timeout)
		if err != nil {
			return false, err
		}
		for _, r := range results {
			if r.Error.Code() != ck.ErrNoError {
				return false, r.Error
			}
			has = has || r.Config["process.roles"].Value != ""
		}
		return has, nil
	})
}
