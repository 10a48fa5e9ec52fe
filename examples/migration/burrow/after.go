package burrow

import (
	"context"
	"log"
	"time"

	"github.com/goneli/neli"
)

var _ locker = (*Lock)(nil)

// after evaluates while it has the lock, until ctx is done. It then closes n, since nothing else ends a waiting Lock.
func after(ctx context.Context, n *neli.Neli, evaluate func()) {
	defer context.AfterFunc(ctx, func() { _ = n.Close() })()
	lock := &Lock{Neli: n}
	for ctx.Err() == nil {
		if err := lock.Lock(); err != nil {
			log.Print("no lock: ", err)
			return // the Neli is closed or has failed, so retrying is useless
		}
		for term := lock.Context(); term.Err() == nil && ctx.Err() == nil; { // checks the clock
			evaluate()
			select {
			case <-term.Done():
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
		if err := lock.Unlock(); err != nil {
			log.Print("not unlocked: ", err)
		}
	}
}
