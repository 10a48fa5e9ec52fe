package job

import (
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goneli/neli"
	"github.com/goneli/neli/cmd/neli/internal/guard"
)

// sayStopped is how long a command must be stopped before the log says so. Programs that limit the use of
// the processor stop it more briefly, many times a second.
const sayStopped = time.Second

// stop logs that something other than this process has stopped the command: a stopped command keeps
// leadership and does nothing.
type stop struct {
	log *slog.Logger

	mu      sync.Mutex
	asked   bool // TSTP was passed on
	told    bool // the log says that the command is stopped
	changes int  // how often it was stopped or continued
}

// sent notes a signal that is passed on to the command.
func (s *stop) sent(sent syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch sent {
	case unix.SIGTSTP:
		s.asked = true
	case unix.SIGCONT:
		s.asked = false
	}
}

// heard handles a guard's report that the command was stopped or continued.
func (s *stop) heard(r guard.Report) {
	s.mu.Lock()
	s.changes++
	change, told := s.changes, s.told
	if r.Continued {
		s.asked, s.told = false, false
	} else if !s.asked {
		time.AfterFunc(sayStopped, func() { s.tell(change, r) })
	}
	s.mu.Unlock()
	if told && r.Continued {
		s.log.Info("the command goes on", "process_group", r.Group)
	}
}

// tell logs a stop unless the command has gone on or ended since.
func (s *stop) tell(change int, r guard.Report) {
	s.mu.Lock()
	lasts := change == s.changes
	s.told = s.told || lasts
	s.mu.Unlock()
	if lasts {
		s.log.Warn("the command was stopped, not by neli: it keeps leadership and does nothing", "signal", unix.SignalName(r.Stopped), "process_group", r.Group)
	}
}

// over is called when the command has ended.
func (s *stop) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
}

// kin are the ids of the children for which other code of this process waits. All other children are
// adopted orphans, which guard.Reap reaps.
type kin struct {
	mu   sync.Mutex
	pids map[int]bool
}

// start starts a child. It holds the lock, so that method has knows even a child that ends at once.
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

// LeastWait returns the shortest Wait that is of use with a lease of t. When the leader's host has crashed, a
// process that has just started may claim only once a lease is over, and up to 3/4 t later if another member
// goes first. If every run gave up earlier, and the next one began to wait anew, nobody would lead again.
func LeastWait(t time.Duration) time.Duration { return 2 * t }

// unelected says what this process has waited for, and what its user can do about it.
func unelected(n *neli.Neli) string {
	status := neli.StatusUnknown
	for _, s := range n.Standings() {
		if slices.Contains(slices.Collect(s.Roles()), 0) {
			status = s.Status
		}
	}
	h, _ := n.Holder(0)
	return unelectedBecause(n.Stats().Reached, status, h, n.Config().HeartbeatTimeout)
}

func unelectedBecause(reached bool, s neli.Status, h neli.Holder, t time.Duration) string {
	switch {
	case !reached:
		return "no broker was reached; neli check says why"
	case s == neli.StatusHeld:
		return fmt.Sprintf("%s leads and was heard %v ago; it leads until its command ends or neli step-down moves it, and neli run without --wait waits for that",
			strconv.Quote(h.Name), h.Age.Round(time.Millisecond))
	case s == neli.StatusVacant:
		return "nobody leads, and no claim of this process came back from the topic; neli check says whether it can write, and how large --timeout must be"
	}
	return fmt.Sprintf("the topic does not show yet who leads; a former leader may have had a longer --timeout than this process (%v); run it with a longer --wait, 70s at most", t)
}
