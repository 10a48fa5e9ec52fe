// Package confluent is fence.Transactions on confluent-kafka-go, the library's default
// client. It exists in builds with cgo and without the tag neli_nolibrdkafka; module franz
// has the same for franz-go.
//
//	kafkas, err := confluent.New(ctx, kafka.ConfigMap{"bootstrap.servers": "localhost:9092"})
//	…
//	err = n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error {
//		open := kafkas.Open(fence.TransactionalID("invoicing", l.Role))
//		return fence.Transactions(ctx, l, open, func(ctx context.Context, p *confluent.Producer) error {
//			// read the state, then for as long as ctx.Err() is nil:
//			return p.Commit(ctx, &kafka.Message{…})
//		})
//	})
package confluent
