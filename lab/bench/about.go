package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// compared lists the modules whose versions the results state.
var compared = map[string]string{
	"github.com/confluentinc/confluent-kafka-go/v2": "confluent-kafka-go",
	"go.etcd.io/etcd/client/v3":                     "etcd's client",
	"github.com/hashicorp/raft":                     "hashicorp/raft",
	"github.com/hashicorp/raft-boltdb/v2":           "raft-boltdb",
	"google.golang.org/grpc":                        "grpc-go",
}

// versions returns the versions of this program's parts. Servers report their own.
func versions() []string {
	var list []string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if name := compared[m.Path]; name != "" {
				list = append(list, name+" "+m.Version)
			}
		}
	}
	_, rdkafka := kafka.LibraryVersion()
	return append(list, "librdkafka "+rdkafka)
}

// commit returns the commit of the sources. Results and pages may differ from it, since a run writes them.
func commit(ctx context.Context) string {
	head, err := git(ctx, "rev-parse", "--short", "HEAD")
	if err != nil || head == "" {
		return "unknown"
	}
	changed, err := git(ctx, "status", "--porcelain", "--", ":/", ":(top,exclude)lab/bench/results", ":(top,exclude)docs/benchmarks.*")
	if err != nil || changed != "" {
		head += ", with changes"
	}
	return head
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	return strings.TrimSpace(string(out)), err
}

// machine describes the machine.
func machine() string {
	model := "unknown CPU"
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 && cpus[0].ModelName != "" {
			model = cpus[0].ModelName
		}
	}
	var name unix.Utsname
	kernel := "unknown"
	if err := unix.Uname(&name); err == nil {
		kernel = unix.ByteSliceToString(name.Release[:])
	}
	return fmt.Sprintf("%d cores (%s), Linux %s, %s", runtime.NumCPU(), model, kernel, runtime.Version())
}
