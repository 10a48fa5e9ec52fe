package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A Host is a network namespace with one address.
type Host struct {
	Name string
	IP   netip.Addr

	tun   *os.File
	ns    *os.File // keeps the namespace; Dial enters it
	jobs  chan func()
	stop  chan struct{}        // closed to end the host's thread
	ended chan struct{}        // closed when it has ended
	links map[netip.Addr]*link // by destination; complete before the first packet is read
}

const device = "wire0"

// newHost makes the namespace and everything in it.
func newHost(name string, prefix netip.Prefix) (*Host, error) {
	h := &Host{Name: name, IP: prefix.Addr(), jobs: make(chan func()),
		stop: make(chan struct{}), ended: make(chan struct{}), links: map[netip.Addr]*link{}}
	ready := make(chan error)
	go h.live(prefix, ready)
	if err := <-ready; err != nil {
		return nil, fmt.Errorf("wire: host %s: %w", name, err)
	}
	return h, nil
}

// live is the host's own thread: it makes the namespace, starts every process in it, and ends when
// it is told to. The kernel takes the thread for the parent of those processes, and kills them when
// it ends. The thread is never unlocked, so that no other goroutine ever runs in this namespace.
func (h *Host) live(prefix netip.Prefix, ready chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// This must not be the main thread, which lives as long as the process and whose namespace is the one in /proc/PID. While
		// this goroutine holds the main thread, a new goroutine gets another one.
		done := make(chan struct{})
		go func() { defer close(done); h.live(prefix, ready) }()
		<-done
		runtime.UnlockOSThread()
		return
	}
	defer close(h.ended)
	if err := h.build(prefix); err != nil {
		h.release()
		ready <- err
		return
	}
	ready <- nil
	for {
		select {
		case job := <-h.jobs:
			job()
		case <-h.stop:
			return
		}
	}
}

func (h *Host) build(prefix netip.Prefix) (err error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("making a network namespace: %w", err)
	}
	if h.ns, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return err
	}
	if h.tun, err = openTUN(); err != nil {
		return err
	}
	kernel, err := netlink.NewHandle() // a socket of this thread's namespace
	if err != nil {
		return err
	}
	defer kernel.Close()
	for _, name := range []string{"lo", device} {
		link, err := kernel.LinkByName(name)
		if err != nil {
			return err
		}
		if name == device {
			addr := &netlink.Addr{IPNet: &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), 32)}}
			if err := kernel.AddrAdd(link, addr); err != nil {
				return fmt.Errorf("adding the address %v: %w", prefix, err)
			}
			// The queue is long, so that only links lose packets, not a forwarder that is late for a moment.
			if err := kernel.LinkSetTxQLen(link, 20*queueLimit); err != nil {
				return err
			}
		}
		if err := kernel.LinkSetUp(link); err != nil {
			return fmt.Errorf("setting up %s: %w", name, err)
		}
	}
	return nil
}

// openTUN makes a TUN device in the namespace of the calling thread.
func openTUN() (*os.File, error) {
	const path = "/dev/net/tun"
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	ifr, err := unix.NewIfreq(device)
	if err == nil {
		ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("making a TUN device: %w", err)
	}
	// This comes last: the runtime's poller must not watch the descriptor before it has a device.
	return os.NewFile(uintptr(fd), path), nil
}

var errClosed = errors.New("wire: closed")

// Start starts a process on the host, in a session of its own. It is killed when this process ends
// or the Net is closed, even if it is suspended.
func (h *Host) Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	select {
	case h.jobs <- func() { started <- cmd.Start() }:
		return <-started
	case <-h.ended:
		return errClosed
	}
}

// Dial connects from the host to a numeric address and port; a name would be resolved outside the
// host. Its signature fits the dialers of most clients.
func (h *Host) Dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	if _, err := netip.ParseAddrPort(addr); err != nil {
		return nil, fmt.Errorf("wire: dialing %s: %w", addr, err)
	}
	err = h.enter(func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}

// Listen listens on the host, on one of its own addresses.
func (h *Host) Listen(network, addr string) (l net.Listener, err error) {
	err = h.enter(func() (err error) {
		l, err = net.Listen(network, addr)
		return err
	})
	return l, err
}

// ListenPacket is Listen for datagrams.
func (h *Host) ListenPacket(network, addr string) (c net.PacketConn, err error) {
	err = h.enter(func() (err error) {
		c, err = net.ListenPacket(network, addr)
		return err
	})
	return c, err
}

// enter runs f on a thread in the host's namespace. A socket stays in the namespace in which it was made.
func (h *Host) enter(f func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	if err := unix.Setns(int(h.ns.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("wire: entering the namespace of %s: %w", h.Name, err)
	}
	err = f()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, back) // this thread ends with its goroutine
	}
	runtime.UnlockOSThread()
	return err
}

func (h *Host) release() {
	if h.tun != nil {
		_ = h.tun.Close()
	}
	if h.ns != nil {
		_ = h.ns.Close()
	}
}
