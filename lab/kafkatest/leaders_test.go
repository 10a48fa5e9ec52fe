package kafkatest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestPreferredReplicaComesFirst(t *testing.T) {
	ids := []int32{1, 2, 3}
	assert.Equal(t, []int32{3, 1, 2}, first(ids, 3))
	assert.Equal(t, []int32{1, 2, 3}, first(ids, 1))
	assert.Equal(t, []int32{1, 2, 3}, ids, "they are left as they are")
}

func TestBrokerLeadsOnlyPartitionsThatPreferIt(t *testing.T) {
	of := func(leader int32, replicas ...int32) kmsg.MetadataResponseTopicPartition {
		return kmsg.MetadataResponseTopicPartition{Leader: leader, Replicas: replicas}
	}
	b := &Broker{ID: 2}
	assert.True(t, b.leads([]kmsg.MetadataResponseTopicPartition{of(2, 2, 1), of(2, 2, 3)}))
	assert.False(t, b.leads([]kmsg.MetadataResponseTopicPartition{of(2, 2, 1), of(2, 1, 2)}), "Kafka would give it back")
	assert.False(t, b.leads([]kmsg.MetadataResponseTopicPartition{of(2, 2, 1), of(1, 2, 1)}))
}
