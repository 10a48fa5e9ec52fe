package job

import (
	"log/slog"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goneli/neli/cmd/neli/internal/guard"
)

// sayStopped is how long a command must be stopped before the log says so. Programs that limit the use of
// the processor stop it more briefly, many times a second.
const sayStopped = time.Second

// stop logs that a command was stopped, unless it was stopped through this process: the command keeps
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
