// Command neli-kafka runs a real Apache Kafka of one or three brokers until it is
// interrupted, for trying out NELI:
//
//	cd lab && go run ./cmd/neli-kafka
//
// It listens on port 9092 if that is free (three brokers: 9092 to 9094), else on free ports; -port sets another. It
// prints the bootstrap address to standard output, and everything else to standard error. It needs Java 17 and, the
// first time, Maven, which fetches Kafka for a minute or two. Without -dir the data is removed when it ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/goneli/neli/lab/kafkatest"
)

func main() {
	opts := kafkatest.Options{
		BrokerProps: map[string]string{},
		Log:         slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	flag.IntVar(&opts.Brokers, "brokers", 1, "number of brokers, 1 or 3")
	flag.IntVar(&opts.Port, "port", 0, "port of the first broker, followed by those of the others (default 9092, if free)")
	flag.StringVar(&opts.Dir, "dir", "", "`directory` for data and logs, which must be empty or absent, and is kept (default a temporary one)")
	flag.Func("set", "broker setting as `name=value`; may be repeated", func(s string) error {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New("must be name=value")
		}
		opts.BrokerProps[name] = value
		return nil
	})
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "neli-kafka: unexpected argument %q\n", flag.Arg(0))
		flag.Usage()
		os.Exit(2)
	}

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, opts); err != nil {
		fmt.Fprintln(os.Stderr, "neli-kafka:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, opts kafkatest.Options) error {
	if opts.Port == 0 && free(usual, opts.Brokers) {
		opts.Port = usual
	}
	cluster, err := kafkatest.Start(ctx, opts)
	if err != nil {
		if ctx.Err() != nil {
			return nil // interrupted while it started
		}
		return err
	}
	defer cluster.Stop()
	fmt.Println(cluster.Bootstrap())
	<-ctx.Done()
	opts.Log.Info("stopping")
	return nil
}

// usual is the port at which all examples look for Kafka.
const usual = 9092

// free reports whether consecutive ports of the loopback interface are free.
func free(first, count int) bool {
	for port := first; port < first+count; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		defer l.Close()
	}
	return true
}
