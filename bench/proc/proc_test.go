package proc

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestNurseryKillsEverything(t *testing.T) {
	n := NewNursery()
	var all []*Process
	for range 2 {
		p, err := n.Start(exec.Command("sleep", "600"))
		require.NoError(t, err)
		session, err := unix.Getsid(p.Pid())
		require.NoError(t, err)
		assert.Equal(t, p.Pid(), session, "a session of its own")
		all = append(all, p)
	}
	require.NoError(t, all[0].Signal(unix.SIGSTOP), "suspended processes end, too")
	n.Close()
	n.Close()
	for _, p := range all {
		<-p.Done()
		assert.Equal(t, "signal: killed", p.State())
	}
	_, err := n.Start(exec.Command("sleep", "600"))
	assert.Error(t, err, "after the end")
}

func TestFreeAddrsDiffer(t *testing.T) {
	addrs, err := FreeAddrs(4)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, a := range addrs {
		assert.False(t, seen[a], a)
		seen[a] = true
	}
	assert.Len(t, seen, 4)
}
