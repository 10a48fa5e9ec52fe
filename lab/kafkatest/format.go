package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// checkpointName is the file in a formatted directory with the levels of the cluster's features.
const checkpointName = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"

// format prepares the broker's data directory. For KafkaVersion and without Hosts, Kafka's tool does it only once,
// since its JVM takes a quarter of the processor time of a broker's start. Afterwards its result is copied.
func (b *Broker) format(ctx context.Context, clusterID string) error {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	props := formatProperties(b.cluster.properties(b))
	if err := os.WriteFile(b.propertiesFile(), []byte(props), 0o600); err != nil {
		return err
	}
	if b.cluster.opts.ZooKeeper {
		return nil
	}
	kept := filepath.Join(b.cluster.jars, "formatted")
	ours := b.cluster.opts.Version == KafkaVersion && b.cluster.opts.Hosts == nil // elsewhere the files differ, or are not at hand
	if checkpoint, err := os.ReadFile(kept); ours && err == nil {
		return b.formatLike(checkpoint, clusterID)
	}
	cmd := b.cluster.java("-Xmx128m", "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", b.propertiesFile())
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := b.cluster.nursery.StartBy(cmd, b.startOn)
	if err != nil {
		return b.errorf("formatting: %w", err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
		return b.errorf("formatting: %w", ctx.Err())
	}
	if state := cmd.ProcessState; !state.Success() {
		return b.errorf("formatting: %s\n%s", state, out.String())
	}
	if checkpoint, err := os.ReadFile(filepath.Join(b.dataDir(), checkpointName)); ours && b.ID == 1 && err == nil {
		fresh := kept + "." + clusterID
		if os.WriteFile(fresh, checkpoint, 0o644) == nil {
			_ = os.Rename(fresh, kept) // if this fails, the tool runs next time, too
		}
	}
	return nil
}

// formatLike writes what Kafka's tool would write: a checkpoint, which is the same for all brokers of a version, and
// the broker's identity.
func (b *Broker) formatLike(checkpoint []byte, clusterID string) error {
	meta := fmt.Sprintf("version=1\ncluster.id=%s\nnode.id=%d\ndirectory.id=%s\n", clusterID, b.ID, newClusterID())
	file := filepath.Join(b.dataDir(), checkpointName)
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, checkpoint, 0o600),
		os.WriteFile(filepath.Join(b.dataDir(), "meta.properties"), []byte(meta), 0o600))
}
