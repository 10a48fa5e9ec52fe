package cli

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/goneli/neli"
)

const sentinelLong = `Watch members on this machine, and release what crashed ones held.

A process that crashes costs the whole --timeout of its group. Beside a sentinel it costs round
trips: members that are told of the socket (--sentinel of neli run, Config.Sentinel,
NELI_SENTINEL) hand it a file by which the kernel tells of their death, and it gives back what
they held, in their names. One sentinel serves all groups of one Kafka cluster. It needs READ and
WRITE on their topics, and never leads. While it does not run a crash costs --timeout again.

The socket's directory must belong to the sentinel's user or root, and nobody else may be able to
write to it; a missing one is made with mode 0750. Who may reach the socket is what its mode says. --group, --topic, --name and
--timeout of the members do not matter here.

Give fencing tokens to whatever the work changes: requests of a crashed process that are under
way may arrive after its successor has begun, and --timeout hid many of these.

Linux 5.3 or later. Exit codes: 0 a signal has ended it; 125 it has failed.`

func newSentinel(c *common) *cobra.Command {
	var socket string
	var allow []string
	cmd := &cobra.Command{
		Use:   "sentinel --socket PATH",
		Short: "Release at once what crashed members on this machine held",
		Long:  sentinelLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := c.logger(cmd)
			if err != nil {
				return err
			}
			props, err := c.kafka(cmd)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return neli.RunSentinel(ctx, neli.SentinelConfig{Socket: socket, KafkaConfig: props, Allow: allow, Name: c.name, Logger: logger, Provider: provider(props)})
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "where members register: the path of a unix socket (required)")
	cmd.Flags().StringArrayVar(&allow, "allow", nil, "a pattern of topics that may be watched, like 'orders.*'; may be repeated (default: all)")
	return cmd
}
