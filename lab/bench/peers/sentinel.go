package peers

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/child"
)

// watched returns a system on Kafka with a sentinel beside the members of each group.
func watched(s System) System {
	s.Setting += ", sentinel"
	s.Sentinel, s.Kinds = true, []Kind{Kill}
	return s
}

// A Sentinel is a sentinel in a process of its own.
type Sentinel struct {
	*child.Process
	Socket string
}

// SentinelCommand is the subcommand that makes this program a sentinel.
const SentinelCommand = "sentinel"

// StartSentinel starts a sentinel with the logs of the given member. Its socket is in a directory
// of the group.
func StartSentinel(place Place, of member.Params) (Sentinel, error) {
	s := Sentinel{Socket: filepath.Join(place.Dir, of.Group, "s")}
	of.Sentinel = s.Socket
	var err error
	s.Process, err = place.Child(SentinelCommand, of.Group+"-sentinel", of, nil)
	return s, err
}

// SentinelMain runs a sentinel until SIGKILL.
func SentinelMain() error {
	var of member.Params
	if _, err := child.Begin(&of); err != nil {
		return err
	}
	return neli.RunSentinel(context.Background(), neli.Config{Sentinel: of.Sentinel, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": strings.Join(of.Servers, ",")}})
}
