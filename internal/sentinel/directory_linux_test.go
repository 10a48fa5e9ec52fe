package sentinel

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	stranger = 4711 // a user that is not this process's
	another  = 4712
)

// tree makes directories below a temporary one, each "name mode owner", or links, "name -> target owner".
func tree(t *testing.T, entries ...string) (base string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("who is not root has no directories of other users")
	}
	base, err := os.MkdirTemp("", "neli") // t.TempDir is below a directory that other users cannot enter
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	require.NoError(t, os.Chmod(base, 0o755)) //nolint:gosec // others may look
	for _, e := range entries {
		var name, target string
		var mode uint32
		var owner int
		if _, err := fmt.Sscanf(e, "%s -> %s %d", &name, &target, &owner); err == nil {
			require.NoError(t, os.Symlink(target, filepath.Join(base, name)))
		} else {
			_, err := fmt.Sscanf(e, "%s %o %d", &name, &mode, &owner)
			require.NoError(t, err)
			require.NoError(t, os.Mkdir(filepath.Join(base, name), 0o755))
			require.NoError(t, unix.Chmod(filepath.Join(base, name), mode))
		}
		require.NoError(t, os.Lchown(filepath.Join(base, name), owner, owner))
	}
	return base
}

// A user who can replace a directory above the socket can put a socket there and learn secrets.
func TestReplaceableDirectoryAboveTheSocketIsRefused(t *testing.T) {
	for _, c := range []struct {
		what    string
		entries []string
		socket  string
		refused bool
	}{
		{"the sentinel's own directory below root's", []string{"a 755 0", "a/own 750 4711"}, "a/own/s", false},
		{"others may write above it", []string{"a 777 0", "a/own 750 4711"}, "a/own/s", true},
		{"others may write above it: the group", []string{"a 775 0", "a/own 750 4711"}, "a/own/s", true},
		{"others may write further above", []string{"a 777 0", "a/b 755 0", "a/b/own 750 4711"}, "a/b/own/s", true},
		{"the sticky bit, and a directory of root", []string{"a 1777 0", "a/own 755 0"}, "a/own/s", false},
		{"the sticky bit, but others may have been the first to put it there", []string{"a 1777 0", "a/own 750 4711"}, "a/own/s", true},
		{"another user's directory", []string{"a 755 4712", "a/own 750 4711"}, "a/own/s", true},
		{"the sentinel's own above it", []string{"a 755 4711", "a/own 750 4711"}, "a/own/s", false},
		{"a link of root's", []string{"b 755 0", "b/own 750 4711", "a -> b 0"}, "a/own/s", false},
		{"a link where others may write", []string{"b 755 0", "b/own 750 4711", "w 777 0", "w/a -> ../b 0"}, "w/a/own/s", true},
		{"a link in a directory with the sticky bit, of another user's", []string{"b 755 0", "b/own 750 4711", "w 1777 0", "w/a -> ../b 4712"}, "w/a/own/s", true},
		{"a link in a directory with the sticky bit, of root's", []string{"b 755 0", "b/own 750 4711", "w 1777 0", "w/a -> ../b 0"}, "w/a/own/s", false},
		{"a link to where others may write", []string{"w 777 0", "w/own 750 4711", "a -> w/own 0"}, "a/s", true},
		{"others may write beyond a link", []string{"w 777 0", "w/b 755 0", "a -> w/b 0"}, "a/../s", true},
		{"links without an end", []string{"a -> b 0", "b -> a 0"}, "a/s", true},
		{"no such directory", nil, "a/s", true},
	} {
		err := checkAbove(tree(t, c.entries...)+"/"+c.socket, stranger)
		require.Equal(t, c.refused, err != nil, "%s: %v", c.what, err)
	}
	base := tree(t, "a 777 0")
	t.Chdir(base)
	require.ErrorIs(t, checkAbove("a/s", stranger), errAbove, "a relative path")
	require.NoError(t, checkAbove("s", stranger))
}

// as runs f in a thread of another user.
func as(t *testing.T, user int, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	switchTo := func(euid int) {
		_, _, e := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(euid), ^uintptr(0))
		require.Zero(t, e)
	}
	switchTo(user)
	defer switchTo(0)
	f()
}

// Another user has put a directory of his in the place of the sentinel's, and listens there.
func TestMemberSendsNoSecretToAnotherUsersSocket(t *testing.T) {
	shared := tree(t, "shared 777 0") + "/shared"
	p := startPost(t, socketIn(shared+"/own"), nil)
	var l *net.UnixListener
	as(t, another, func() {
		require.NoError(t, os.Rename(shared+"/own", shared+"/aside"))
		require.NoError(t, os.Mkdir(shared+"/own", 0o755))
		var err error
		l, err = net.ListenUnix(network, &net.UnixAddr{Name: p.socket, Net: network})
		require.NoError(t, err)
	})
	defer l.Close()
	_, _, err := dial(p.socket, registration(NewSecret()))
	require.ErrorIs(t, err, errAbove, "no sentinel, but another user")
	require.NoError(t, l.SetDeadline(time.Now().Add(20*time.Second)))
	c, err := l.AcceptUnix()
	require.NoError(t, err)
	defer c.Close()
	_, _, err = receive(c)
	require.ErrorIs(t, err, net.ErrClosed, "nothing was sent")
	require.NoError(t, os.RemoveAll(shared+"/own"))
	require.NoError(t, os.Rename(shared+"/aside", shared+"/own"))
	_, err = connect(p.socket)
	require.NoError(t, err, "a sentinel of root, or of the member's own user")
}

// Members of other users would refuse such a sentinel, as they cannot tell it from another user.
func TestSentinelBelowADirectoryForAllAcceptsOnlyItsOwnUser(t *testing.T) {
	shared := tree(t, "shared 777 0") + "/shared"
	require.NoError(t, os.Mkdir(shared+"/own", 0o755))
	p := prepare(t, socketIn(shared+"/own"), nil)(func(s *Server) {
		require.NoError(t, s.own, "root is trusted by all")
		s.own = errAbove
	})
	as(t, another, func() {
		require.ErrorIs(t, ownOnly(p.socket, p.said.Logger(slog.LevelInfo)), errAbove)
	})
	require.Equal(t, 1, p.said.Count("only members of this user are taken"))
	require.NotEqual(t, Refused, tryRegister(t, p, registration(NewSecret()), own(t)).State)
	var c *net.UnixConn
	as(t, another, func() { c = dialRaw(t, p) })
	require.Equal(t, Answer{Refused, errAbove.Error()}, registersOn(t, c, registration(NewSecret()), own(t)), "another user's member")
}
