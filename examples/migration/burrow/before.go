// Package burrow moves from a lock in ZooKeeper, as Burrow uses it.
package burrow

import (
	"log"
	"time"

	"github.com/go-zookeeper/zk"
)

// locker is Burrow's interface of a lock.
type locker interface {
	Lock() error
	Unlock() error
}

// before evaluates while it has the lock. expired receives an event when the session has expired.
func before(conn *zk.Conn, expired <-chan zk.Event, evaluate func()) {
	var lock locker = zk.NewLock(conn, "/burrow/notifier", zk.WorldACL(zk.PermAll))
	for {
		if err := lock.Lock(); err != nil {
			log.Print("no lock: ", err)
			time.Sleep(time.Second)
			continue
		}
		for over := false; !over; {
			evaluate()
			select {
			case <-expired: // the connection's event; the lock itself reports nothing
				over = true
			case <-time.After(time.Second):
			}
		}
		if err := lock.Unlock(); err != nil {
			log.Print("not unlocked: ", err)
		}
	}
}
