package sentinel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goneli/neli/lab/pause"
)

// Way is what a proxy does to what a member says.
type Way int

// Ways of a proxy. All but NoFiles pass files on.
const (
	NoFiles Way = iota // the pidfd is lost
	Late               // each packet comes half a second later
	Cut                // the connection ends after the first packet
	Garbled            // one byte of each packet is changed
	Ways
)

func (w Way) String() string { return [...]string{"without files", "late", "cut", "garbled"}[w] }

const (
	packet = 8192
	late   = 500 * time.Millisecond
)

// Proxy stands between members and a sentinel until ctx ends: it takes the name of the sentinel's
// socket, and passes messages on in both directions. Existing connections remain; those through the
// proxy end with it. A sentinel that starts meanwhile takes the name, and keeps it.
func Proxy(ctx context.Context, socket string, way Way) error {
	behind := socket + ".behind"
	if err := os.Rename(socket, behind); err != nil {
		return fmt.Errorf("sentinel: standing before it: %w", err)
	}
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		return fmt.Errorf("sentinel: standing before it: %w", err)
	}
	l.SetUnlinkOnClose(false)
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return os.Rename(behind, socket)
		}
		conns.Go(func() { relay(ctx, c, behind, way) })
	}
}

// relay passes on the messages of one connection until either end is closed.
func relay(ctx context.Context, member *net.UnixConn, behind string, way Way) {
	defer member.Close()
	sentinel, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: behind, Net: "unixpacket"})
	if err != nil {
		return
	}
	defer sentinel.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = member.Close()
		_ = sentinel.Close()
	})
	defer stop()
	var back sync.WaitGroup
	back.Go(func() {
		pass(ctx, sentinel, member, Late)
		_ = member.Close()
	})
	pass(ctx, member, sentinel, way)
	_ = sentinel.Close()
	back.Wait()
}

// pass passes packets on in one direction.
func pass(ctx context.Context, from, to *net.UnixConn, way Way) {
	b, oob := make([]byte, packet), make([]byte, unix.CmsgSpace(4*4))
	for n := 0; ; n++ {
		size, more, _, _, err := from.ReadMsgUnix(b, oob)
		if err != nil || size == 0 || way == Cut && n > 0 {
			return
		}
		files := filesOf(oob[:more])
		passed := files
		switch way {
		case NoFiles:
			passed = nil
		case Late:
			err = pause.For(ctx, late)
		case Garbled:
			b[rand.IntN(size)] ^= 0x55
		}
		if err == nil {
			var rights []byte
			if len(passed) > 0 {
				rights = unix.UnixRights(passed...)
			}
			_, _, err = to.WriteMsgUnix(b[:size], rights, nil)
		}
		for _, fd := range files {
			_ = unix.Close(fd)
		}
		if err != nil {
			return
		}
	}
}

func filesOf(oob []byte) (files []int) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		if fds, err := unix.ParseUnixRights(&m); err == nil {
			files = append(files, fds...)
		}
	}
	return files
}
