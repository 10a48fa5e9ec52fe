package sentinel

import (
	"context"
	"encoding/json"
	"net"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goneli/neli/lab/pause"
)

// Victim is a live member in whose name others are registered.
type Victim struct {
	Topic, Group, Process, Name string
	T                           time.Duration
}

// Forge registers processes that die at once, again and again until ctx ends. It registers them under
// the id of a living member, with secrets that are not that member's, without a file, with a file that
// is not a pidfd, and with messages that are not registrations. A sentinel that believed any of these
// would release what the member leads.
func Forge(ctx context.Context, socket string, v Victim) error {
	for {
		for _, secret := range []string{"", "not the secret of it, but as long as a secret is, or longer", v.Process} {
			if err := forge(socket, v, secret); err != nil {
				return err
			}
		}
		if pause.For(ctx, 50*time.Millisecond) != nil {
			return nil
		}
	}
}

// forge registers a process that dies.
func forge(socket string, v Victim, secret string) error {
	dying := exec.Command("/bin/sleep", "60")
	if err := dying.Start(); err != nil {
		return err
	}
	defer dying.Wait()
	defer dying.Process.Kill()
	fd, err := unix.PidfdOpen(dying.Process.Pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	registration, err := json.Marshal(map[string]any{"register": map[string]any{"topic": v.Topic, "group": v.Group,
		"process": v.Process, "secret": secret, "name": v.Name, "t": v.T}})
	if err != nil {
		return err
	}
	for _, files := range [][]int{{fd}, nil, {1}, {fd, fd}} {
		for _, said := range [][]byte{registration, []byte(`{"goodbye":true}`), []byte("}{")} {
			say(socket, said, files)
		}
	}
	return nil
}

// say sends one message. What the sentinel does about it shows elsewhere, so errors are ignored.
func say(socket string, said []byte, files []int) {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		return
	}
	defer c.Close()
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	if _, _, err := c.WriteMsgUnix(said, rights, nil); err != nil {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = c.Read(make([]byte, packet))
}
