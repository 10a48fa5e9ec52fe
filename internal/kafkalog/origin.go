package kafkalog

import (
	"context"
	"errors"
	"time"

	"github.com/goneli/neli/kafka"
)

// origins tells which logs are read from their origin: from their first record on, without a gap, in
// the only incarnation that they ever had. Under KRaft a partition's leader epoch grows whenever its
// leader was away, whatever it has lost meanwhile. So a record of epoch 0 was appended to a log that
// had lost nothing. If something is not proven, the wait of T remains.
type origins struct {
	never    string   // why no log of this topic is read from its origin; empty: one may be
	asked    bool     // the brokers were asked whether they keep epochs
	verified bool     // the topic was still the same after a first record was read
	why      []string // by partition: why it is not read from its origin; empty: it is
}

const (
	notFirst   = "reading does not begin at the first record"
	deleted    = "the first records were deleted"
	empty      = "the partition has no record and others have some: it may be new"
	noEpochs   = "the cluster is not known to keep leader epochs (KRaft)"
	noEpoch    = "the client reports no leader epochs"
	later      = "the leader epoch is not 0: a broker was away"
	gap        = "some offsets have no record"
	unverified = "the topic's id could not be verified"
)

// originPatience is how long a question may take if its answer only saves the wait of T.
const originPatience = 2 * time.Second

// newOrigins takes the extents of all logs. An empty log beside one with records may belong to a
// partition that was just added: members that have not noticed it lead its roles in other logs.
func newOrigins(ends []kafka.OffsetRange) origins {
	o := origins{why: make([]string, len(ends))}
	unused := 0
	for _, e := range ends {
		if e.End == 0 {
			unused++
		}
	}
	if 0 < unused && unused < len(ends) {
		o.never = empty
	}
	return o
}

// begin notes that reading of p begins at an offset.
func (o *origins) begin(p int, offset, start int64) {
	o.why[p] = o.never
	if offset > 0 {
		o.why[p] = notFirst
	}
	if start > 0 {
		o.why[p] = deleted
	}
}

// read notes that r was read when the record at position was due.
func (o *origins) read(r kafka.Record, position int64) {
	switch {
	case o.why[r.Partition] != "":
	case r.Offset != position:
		o.why[r.Partition] = gap
	case r.Epoch < 0:
		o.why[r.Partition] = noEpoch
	case r.Epoch > 0:
		o.why[r.Partition] = later
	}
}

// askEpochs asks once whether the brokers keep leader epochs. It runs before the reading of a log that
// may count as read from its origin. No answer counts as no.
func (k *kafkaLog) askEpochs(ctx context.Context) {
	o := &k.origins
	if o.asked || o.never != "" {
		return
	}
	o.asked, o.never = true, noEpochs
	keeper, can := k.topic.Admin.(kafka.EpochKeeper)
	if !can {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, originPatience)
	defer cancel()
	keeps, err := keeper.KeepsEpochs(ctx)
	if err != nil {
		k.log.Debug("cannot ask whether the brokers keep leader epochs", "topic", k.topic.name, "error", err)
	}
	if keeps && err == nil {
		o.never = ""
	}
}

// verifyOrigin checks, after the first record of a log that is read from its origin, that the topic was
// not replaced between Open and that record. An error is final.
func (k *kafkaLog) verifyOrigin(ctx context.Context, p int) error {
	o := &k.origins
	if o.verified || o.why[p] != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, originPatience)
	defer cancel()
	info, err := k.topic.Admin.Topic(ctx, k.topic.name)
	if err == nil {
		err = k.topic.same(info)
	}
	switch {
	case err == nil:
		o.verified = true
	case errors.Is(err, ErrTopicReplaced), errors.Is(err, ErrPartitionsChanged):
		return err
	default:
		o.why[p] = unverified
	}
	return nil
}
