//go:build unix

package show

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/nursery"
	"github.com/goneli/neli/lab/witness"
)

// Roles is the number of roles.
const Roles = 4

// Process is a member as the demo sees it.
type Process struct {
	*nursery.Process
	Name    string
	orders  io.Writer
	samples *witness.Samples // memory that it shares with the member
}

// start starts this program again, as a member.
func start(processes *nursery.Nursery, name string, args []string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "neli-demo-")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := os.Remove(file.Name()); err != nil {
		return nil, err
	}
	p := &Process{Name: name}
	if p.samples, err = witness.Open(file); err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{"-member", name, "--"}, args...)...)
	cmd.Stderr, cmd.ExtraFiles = os.Stderr, []*os.File{file}
	if p.orders, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.Process, err = processes.Start(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

// Tell sends the process an order.
func (p *Process) Tell(order string) error {
	_, err := io.WriteString(p.orders, order+"\n")
	return err
}

// Member contends for all roles, and notes each millisecond which of them it leads, until standard input says "close" or ends.
// It passes all other orders to obey.
func Member(c neli.Config, obey func(order string)) error {
	samples, err := witness.Open(os.NewFile(3, "samples"))
	if err != nil {
		return err
	}
	c.Roles = Roles
	n, err := neli.New(c)
	if err != nil {
		return err
	}
	led := make(chan error, 1)
	go func() { led <- n.Lead(context.Background(), work) }()
	stop := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() { sample(n, samples, stop) })

	for orders := bufio.NewScanner(os.Stdin); orders.Scan() && orders.Text() != "close"; {
		obey(orders.Text())
	}
	err = n.Close()
	close(stop)
	sampling.Wait()
	if lead := <-led; !errors.Is(lead, neli.ErrClosed) {
		err = errors.Join(err, lead)
	}
	return err
}

// work is where a real member would do its work. ctx ends with the leadership.
func work(ctx context.Context, _ neli.Leadership) error {
	<-ctx.Done()
	return nil
}

// sample looks at the leadership of all roles each millisecond.
func sample(n *neli.Neli, samples *witness.Samples, stop <-chan struct{}) {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	runs := [Roles]int{-1, -1, -1, -1}
	for {
		for role := range runs {
			before := witness.Now()
			token, leads := n.Token(role)
			after := witness.Now()
			if !leads {
				token = witness.No
			}
			runs[role] = samples.Take(runs[role], 0, role, token, witness.Window{Before: before, After: after})
		}
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
	}
}
