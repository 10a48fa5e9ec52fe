// Package disk is a disk that can be stalled: a file system that a process of its own serves from another directory. While
// that process is suspended, the disk answers nothing: no reads that miss the kernel's cache, no writes and no syncs. Users of
// the disk run on, and so do their connections.
//
// A frozen file system (fsfreeze) would do the same. But if the runner died meanwhile, processes that wait for it would stay
// behind, and nothing could kill them. When the process of this disk ends, the kernel fails all requests instead.
package disk

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/goneli/neli/lab/chaos/jail"
	"github.com/goneli/neli/lab/nursery"
	"github.com/goneli/neli/lab/pause"
)

// Env makes the binary a disk. It has the directory to serve and the one where it appears, separated by a colon.
const Env = "NELI_CHAOS_DISK"

// served answers a sync of a directory, which go-fuse does not support and Kafka needs.
type served struct{ fuse.RawFileSystem }

func (served) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }

// Main serves a disk until its process ends.
func Main() error {
	from, at, _ := strings.Cut(os.Getenv(Env), ":")
	root, err := fs.NewLoopbackRoot(from)
	if err != nil {
		return err
	}
	server, err := fuse.NewServer(served{fs.NewNodeFS(root, nil)}, at, &fuse.MountOptions{
		DirectMountStrict: true, Name: "chaos",
		ExplicitDataCacheControl: true,                 // only the kernel changes the files
		DisabledCapabilities:     fuse.CAP_PASSTHROUGH, // it would read and write without this process
	})
	if err != nil {
		return err
	}
	server.Serve()
	return nil
}

// Start makes both directories and starts a disk, by executing this program again. Suspend the process to stall the disk.
func Start(ctx context.Context, n *nursery.Nursery, from, at string) (*nursery.Process, error) {
	for _, dir := range []string{from, at} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(jail.Self())
	cmd.Env = append(os.Environ(), Env+"="+from+":"+at)
	cmd.Stderr = os.Stderr
	p, err := n.Start(cmd)
	if err != nil {
		return nil, err
	}
	var stat unix.Statfs_t
	if !pause.Until(ctx, 10*time.Second, func() bool { return unix.Statfs(at, &stat) == nil && stat.Type == unix.FUSE_SUPER_MAGIC }) {
		return nil, fmt.Errorf("the disk at %s was not mounted: %s", at, p.State())
	}
	return p, nil
}
