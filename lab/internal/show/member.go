//go:build unix

package show

import (
	"context"
	"errors"
	"os"
	"os/exec"

	"golang.org/x/sync/errgroup"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/nursery"
)

// Roles is the number of roles.
const Roles = 4

// Process is a member as the demo sees it.
type Process = child.Process

// start starts this program again, as a member.
func start(processes *nursery.Nursery, name string, args []string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return child.New(exec.Command(self, "-member", name), args, child.Options{Nursery: processes, Name: name})
}

// Member contends for all roles, and notes each millisecond which of them it leads, until the order "close". It passes all
// other orders to obey. config makes the member's settings from the member's arguments.
func Member(config func(args []string) neli.Config, obey func(order string)) error {
	var args []string
	self, err := child.Begin(&args)
	if err != nil {
		return err
	}
	c := config(args)
	c.Roles = Roles
	n, err := neli.New(c)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var ends errgroup.Group
	ends.Go(func() error { return child.Sample(ctx, child.Contender{Neli: n, Roles: Roles}) })
	ends.Go(func() error {
		if err := n.Lead(context.Background(), work); !errors.Is(err, neli.ErrClosed) {
			return err
		}
		return nil
	})
	err = child.Obey(self, func(order string) (last bool, err error) {
		if order == "close" {
			return true, n.Close()
		}
		obey(order)
		return false, nil
	})
	stop()
	return errors.Join(err, ends.Wait())
}

// work is where a real member would do its work. ctx ends with the leadership.
func work(ctx context.Context, _ neli.Leadership) error {
	<-ctx.Done()
	return nil
}
