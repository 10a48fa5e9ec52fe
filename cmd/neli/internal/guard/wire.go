package guard

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"syscall"
	"time"
)

// Verb is the argument that makes a process a guard. "--" and the command follow. File 3 has the
// orders, and file 4 takes the reports. File 5 is optional: the directory of a cgroup for the command.
// File 6 is optional: a socket over which the elector passes connections to sentinels. Over the newest one the
// guard tells a sentinel when nothing is left of the command.
const Verb = "__guard"

// SecondVerb is the argument that makes a process a second guard. Further arguments are ignored. File 3
// has the orders, and file 4 is the directory of the cgroup.
const SecondVerb = "__second"

// order is one order of the elector to a guard. It is ten bytes long, so that writing it to a pipe is atomic.
type order struct {
	kind  byte
	value int64
}

const (
	until   byte = 'u' // the lease is certain to last until then, CLOCK_BOOTTIME in nanoseconds
	deliver byte = 's' // a signal for the group

	orderSize = 10
	orderEnd  = '\n'
)

// Until returns the order that tells a guard that the lease is certain to last until at, by Now.
func Until(at time.Duration) []byte { return order{until, int64(at)}.bytes() }

// Deliver returns the order to send the command's group a signal.
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

// Report is a line of JSON from the guard to the elector: that the command was started, stopped or
// continued, what went wrong, or how it ended. If it could not be started there is only one.
type Report struct {
	Group int    `json:"group,omitempty"` // the command's process group; 0: it was not started
	Ended bool   `json:"ended,omitempty"` // nothing is left of the group
	Error string `json:"error,omitempty"` // why it was not started, or that the guard was killed
	// Trouble is what went wrong while the command runs, for example a process that cannot be killed.
	Trouble string `json:"trouble,omitempty"`
	// Stopped is the signal that has stopped the command itself, and Continued says that it goes on. Such
	// a report says nothing else.
	Stopped   syscall.Signal `json:"stopped,omitempty"`
	Continued bool           `json:"continued,omitempty"`

	// Code is the exit code by the rules of timeout(1): the command's own, 128 plus the number of the
	// signal that killed it, 126 if it cannot be executed, 127 if it does not exist.
	Code int `json:"code"`
	// Signal is the signal that killed the command itself; 0: it ended by itself.
	Signal syscall.Signal `json:"signal,omitempty"`
	// Late: the command was killed, or not started, because the lease was over or the elector was gone.
	Late bool `json:"late,omitempty"`
}

// write fails if the elector is gone.
func (r Report) write(w io.Writer) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err // cannot happen: all fields can be encoded
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
