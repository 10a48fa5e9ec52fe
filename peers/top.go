package peers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
)

// maxBallot is the largest ballot that any member may have. A larger one would leave no room for the next token.
const maxBallot = 1 << 61

// top keeps the largest ballot ever appended to a log in a file, if there is one.
type top struct {
	file   string // "": none, so that the ballot is lost with the log
	group  string
	host   string
	mu     sync.Mutex // held while writing
	ballot atomic.Int64
}

// topFile is the contents of the file.
type topFile struct {
	Group string `json:"group"`
	Host  string `json:"host"`
	Top   *int64 `json:"top"` // nil: a file that somebody else has written
}

// openTop reads the file, which may be missing at first.
func openTop(file, group, host string) (*top, error) {
	t := &top{file: file, group: group, host: host}
	if file == "" {
		return t, nil
	}
	var err error
	if t.file, err = behindLinks(file); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return t, t.write(0) // fail now if it cannot be written
	}
	if err != nil {
		return nil, fmt.Errorf("peers: TopFile: %w", err)
	}
	var had topFile
	if err := json.Unmarshal(raw, &had); err != nil || had.Top == nil || *had.Top < 0 || *had.Top > maxBallot {
		return nil, fmt.Errorf("peers: TopFile: %s is damaged: %q; without it tokens depend on wall clocks until all logs are new", file, brief(string(raw)))
	}
	if had.Group != group || had.Host != host {
		return nil, fmt.Errorf("peers: TopFile: %s is of host %q of group %q, and this is host %q of group %q", file, had.Host, had.Group, host, group)
	}
	t.ballot.Store(*had.Top)
	return t, t.write(*had.Top) // fail now if it cannot be written later
}

// behindLinks returns the file that a path leads to. write replaces that file and not a link to it: a
// file in place of the link would be where nobody asked for one, say on a disk that is not kept.
func behindLinks(file string) (string, error) {
	at, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return file, nil
	case err != nil:
		return "", fmt.Errorf("peers: TopFile: %w", err)
	case at.Mode()&fs.ModeSymlink == 0:
		return file, nil
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return "", fmt.Errorf("peers: TopFile: %s is a link to a file that cannot be found: name that file instead: %w", file, err)
	}
	return real, nil
}

func (t *top) known() int64 { return t.ballot.Load() }

// raise writes a ballot to the file if it is the largest so far. The record with that ballot may
// be appended only after raise has succeeded. Other records do not wait for the disk.
func (t *top) raise(ballot int64) error {
	if t.file == "" || ballot <= t.known() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if ballot <= t.known() {
		return nil
	}
	if err := t.write(ballot); err != nil {
		return err
	}
	t.ballot.Store(ballot)
	return nil
}

// write replaces the file, atomically and durably.
func (t *top) write(ballot int64) error {
	raw, err := json.Marshal(topFile{t.group, t.host, &ballot})
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(t.file), filepath.Base(t.file)+".*")
	if err != nil {
		return fmt.Errorf("peers: TopFile: %w", err)
	}
	_, err = next.Write(append(raw, '\n'))
	err = errors.Join(err, next.Sync(), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), t.file)
	}
	if err != nil {
		_ = os.Remove(next.Name()) // only the first error counts
		return fmt.Errorf("peers: TopFile: %w", err)
	}
	return syncDir(filepath.Dir(t.file))
}

// syncDir makes a rename durable, on systems where a directory can be synced.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("peers: TopFile: %w", err)
	}
	err = d.Sync()
	if runtime.GOOS == "windows" || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil // it cannot be done here
	}
	if err = errors.Join(err, d.Close()); err != nil {
		return fmt.Errorf("peers: TopFile: %w", err)
	}
	return nil
}
