package guard

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"syscall"
	"time"
)

// Verb is the argument by which a program is told that it is a guard's process. What
// follows is "--" and the command; file 3 has the orders, file 4 takes the reports.
// With file 5, a directory, the command is put into that cgroup. With file 6, a socket, a
// sentinel is told when nothing is left of the command.
const Verb = "__guard"

// SecondVerb is the argument by which a program is told that it is a second guard's process.
// Further arguments are ignored. File 3 has the orders, file 4 is the cgroup.
const SecondVerb = "__second"

// order is what the elector tells the guard: ten bytes, so that a write of it to a pipe
// is atomic.
type order struct {
	kind  byte
	value int64
}

const (
	until   byte = 'u' // the lease is sure to last until then, CLOCK_BOOTTIME in nanoseconds
	deliver byte = 's' // a signal for the group

	orderSize = 10
	orderEnd  = '\n'
)

// Until is the order that tells a guard until when the lease is sure to last, by Now.
func Until(at time.Duration) []byte { return order{until, int64(at)}.bytes() }

// Deliver is the order to send the command's group a signal.
func Deliver(s syscall.Signal) []byte { return order{deliver, int64(s)}.bytes() }

func (o order) bytes() []byte {
	b := append(make([]byte, 0, orderSize), o.kind)
	b = binary.BigEndian.AppendUint64(b, uint64(o.value))
	return append(b, orderEnd)
}

func readOrder(r io.Reader) (order, error) {
	var b [orderSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return order{}, err
	}
	if b[orderSize-1] != orderEnd || b[0] != until && b[0] != deliver {
		return order{}, fmt.Errorf("not an order: %q", b[:])
	}
	return order{kind: b[0], value: int64(binary.BigEndian.Uint64(b[1:]))}, nil
}

// Report is what the guard tells the elector, in lines of JSON: that the command was started, what
// went wrong, and how it ended. There is no second one if it could not be started.
type Report struct {
	Group int    `json:"group,omitempty"` // the command's process group; 0: it was not started
	Ended bool   `json:"ended,omitempty"` // nothing is left of the group
	Error string `json:"error,omitempty"` // why the guard could not start it
	// Trouble is what went wrong while the command runs: a process that cannot be killed, for example.
	Trouble string `json:"trouble,omitempty"`

	// Code is the exit code by the rules of timeout(1): the command's own, 128 and its signal, 126 if
	// it cannot be executed, 127 if there is none.
	Code int `json:"code"`
	// Signal is what killed the command itself; 0: it ended by itself.
	Signal syscall.Signal `json:"signal,omitempty"`
	// Late: it was killed because the lease was over, or because the elector has gone.
	Late bool `json:"late,omitempty"`
}

// write fails when the elector has gone.
func (r Report) write(w io.Writer) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err // it has no field that could fail
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
