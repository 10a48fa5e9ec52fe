package sentinel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// stranger is a user under which neither members nor sentinels run.
const stranger = 65534

// Replace puts a directory of another user, with a socket of the same name, in the place of a
// sentinel's, until ctx ends. Existing connections remain. It returns how many bytes members have sent
// to the stranger. Members must send none, since they must not tell their secret to a socket that
// another user may have put there.
func Replace(ctx context.Context, socket string) (told int64, err error) {
	dir := filepath.Dir(socket)
	aside := dir + ".aside"
	if err := os.Rename(dir, aside); err != nil {
		return 0, fmt.Errorf("sentinel: replacing its directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir), os.Rename(aside, dir)) }()
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, stranger, stranger)); err != nil {
		return 0, err
	}
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		return 0, err
	}
	var heard atomic.Int64
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			work.Go(func() {
				defer c.Close()
				defer context.AfterFunc(ctx, func() { _ = c.Close() })()
				for b := make([]byte, packet); ; {
					n, err := c.Read(b)
					if err != nil || n == 0 {
						return
					}
					heard.Add(int64(n))
				}
			})
		}
	})
	<-ctx.Done()
	_ = l.Close()
	work.Wait()
	return heard.Load(), nil
}
