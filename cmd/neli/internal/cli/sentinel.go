package cli

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/goneli/neli"
)

const sentinelLong = `Watch members on this machine, and release the roles of those that crash.

Without a sentinel, the roles of a crashed process have no leader for the group's --timeout. With
one, they have none for a few round trips. A member with --sentinel of neli run, Config.Sentinel or
NELI_SENTINEL passes the sentinel a file descriptor by which the kernel reports the member's death.
Then the sentinel releases the member's roles in the member's name. One sentinel serves all groups
of one Kafka cluster. It needs READ and WRITE on their topics, and never leads. While it does not
run, a crash costs --timeout again.

The socket's directory must belong to the sentinel's user or root, and nobody else may be able to
write to it; a missing one is made with mode 0750. Whoever may enter it may connect. Nobody else may
be able to write to a directory above it either, unless sentinel and members are the same user or the
sentinel is root.
The sentinel needs none of the members' --group, --topic, --name and --timeout.

Give fencing tokens to whatever the work changes: requests of a crashed process may still arrive
after its successor has begun. Without a sentinel, most of them arrive within --timeout.

Linux 5.3 or later. Exit codes: 0 ended by a signal; 125 failed.`

func newSentinel(c *common) *cobra.Command {
	var socket string
	var allow []string
	cmd := &cobra.Command{
		Use:     "sentinel --socket PATH",
		Short:   "Release at once the roles of members on this machine that crash",
		Long:    sentinelLong,
		Args:    arguments(0, 0, ""),
		Example: `  neli sentinel --config /etc/neli/kafka.properties --socket /run/neli/sentinel.sock`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			outliveLog()
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
			return neli.RunSentinel(ctx, neli.Config{Sentinel: socket, KafkaConfig: props, Name: c.name, Logger: logger, Provider: provider(props)}, allow...)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "path of the unix socket where members register (required)")
	cmd.Flags().StringArrayVar(&allow, "allow", nil, "a pattern of topics that may be watched, like 'orders.*'; may be repeated (default: all topics)")
	return cmd
}
