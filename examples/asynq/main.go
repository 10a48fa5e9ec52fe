// Command asynq runs asynq's Scheduler on one of several processes. A Scheduler cannot be started again
// after Shutdown, so each term has its own. It also has its own connection to Redis, which sends no
// commands once the term is over.
//
// Start it twice next to a Redis and end the leader. A tick that is due before the next leader takes over
// is missed and not made up for; docs/jobs.md says which ticks may come twice.
//
//	go run ./asynq -name anna
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/goneli/neli"
)

func main() {
	var (
		bootstrap = flag.String("bootstrap", "localhost:9092", "Kafka brokers, host:port,…")
		address   = flag.String("redis", "localhost:6379", "address of the Redis with asynq's queues")
		group     = flag.String("group", "asynq", "the group whose members contend")
		name      = flag.String("name", "", "name of this process in logs (default: host, pid and time)")
		schedule  = flag.String("schedule", "@every 1s", "when the report is due")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	cfg := neli.Config{KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": *bootstrap}, LeaderGroupID: *group, Name: *name}
	if err := run(ctx, cfg, *address, *schedule); err != nil {
		fmt.Fprintln(os.Stderr, "asynq:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cfg neli.Config, address, schedule string) error {
	if _, err := cron.ParseStandard(schedule); err != nil { // asynq's parser; a follower would miss an error
		return fmt.Errorf("-schedule %q: %w", schedule, err)
	}
	n, err := neli.New(cfg)
	if err != nil {
		return err
	}
	logger := log.New(os.Stdout, n.Config().Name+": ", log.Ltime|log.Lmsgprefix)
	err = n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error { return lead(ctx, l, logger, address, schedule) })
	return errors.Join(err, n.Close())
}

// lead is one term.
func lead(ctx context.Context, l neli.Leadership, logger *log.Logger, address, schedule string) error {
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()
	client.AddHook(termHook{l})
	s := asynq.NewSchedulerFromRedisClient(client, &asynq.SchedulerOpts{
		LogLevel: asynq.FatalLevel,
		PostEnqueueFunc: func(info *asynq.TaskInfo, err error) {
			if err != nil {
				logger.Printf("enqueues nothing: %v", err)
				return
			}
			logger.Printf("enqueued %s", info.Type)
		},
	})
	if _, err := s.Register(schedule, asynq.NewTask("report", nil)); err != nil {
		return err
	}
	logger.Printf("starts the scheduler, with token %d", l.Token)
	if err := s.Start(); err != nil {
		return err
	}
	<-ctx.Done()
	// Shutdown returns when the last task has been enqueued. Unless the lease is lost, it is kept until then.
	s.Shutdown()
	logger.Printf("has shut the scheduler down (%v)", context.Cause(ctx))
	return nil
}

// termHook gives the client connections that send nothing to Redis once the term is over, since a timer of the
// Scheduler may fire when the process wakes from a suspension, and the client sends a command again when its
// connection breaks. It cannot stop a command that was already sent, and asynq has no fencing tokens to refuse
// it.
type termHook struct{ term neli.Leadership }

func (h termHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return termConn{conn, h.term}, nil
	}
}

func (termHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (termHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

type termConn struct {
	net.Conn
	term neli.Leadership
}

var errOver = errors.New("the term is over")

func (c termConn) Write(b []byte) (int, error) {
	if !c.term.Valid() {
		return 0, errOver
	}
	return c.Conn.Write(b)
}
