package job

import (
	"os/exec"
	"sync"
)

// kin are the children that this process waits for by name. All others are adopted orphans, which it
// reaps.
type kin struct {
	mu   sync.Mutex
	pids map[int]bool
}

// start starts a child. It holds the lock, so that has knows the child before it can end.
func (k *kin) start(cmd *exec.Cmd) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	k.pids[cmd.Process.Pid] = true
	return nil
}

func (k *kin) add(pid int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pids[pid] = true
}

func (k *kin) remove(pids ...int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, pid := range pids {
		delete(k.pids, pid)
	}
}

func (k *kin) has(pid int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pids[pid]
}
