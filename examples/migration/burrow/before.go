// Package burrow moves from a lock in ZooKeeper as Burrow takes it.
package burrow

import (
	"log"
	"time"

	"github.com/go-zookeeper/zk"
)

// locker is Burrow's ZookeeperLock.
type locker interface {
	Lock() error
	Unlock() error
}

// before evaluates while it has the lock. expired says when the session has expired.
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
			case <-expired: // of the connection: the lock itself tells nobody
				over = true
			case <-time.After(time.Second):
			}
		}
		if err := lock.Unlock(); err != nil {
			log.Print("not unlocked: ", err)
		}
	}
}
