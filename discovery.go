package neli

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"
)

// discovery is what an arbiter can tell of the other processes. Only exclusive
// mode's can: the records of non-exclusive mode are empty.
type discovery interface {
	standing(p int) Standing
	watch() *watcher
	unwatch(*watcher)
	// change returns one thing that w was not told yet.
	change(w *watcher) (Standing, bool)
	members() []Member
}

// discovery returns nil if there is nothing to be told: in non-exclusive mode, and
// when this Neli has ended and reads no more.
func (n *Neli) discovery() discovery {
	if n.ended() != nil {
		return nil
	}
	d, _ := n.arb.(discovery)
	return d
}

// Holder returns who holds role, as far as this process has read. ok is false when
// nobody is known to: the holder has released, or was silent for so long that its
// lease is over, or nothing is known yet (Watch tells which), or role is not below
// R here.
//
// What it promises is a statement about the past: the holder held the role, with
// that token, at the time of a record which this process read Age ago. What it does
// not promise is that the holder still does; so it says where to send a request,
// and whom to ask, and the leader that gets it looks at IsLeaderOf. It is no check
// of leadership, be it one's own, and no substitute for the fencing token.
//
// A process that has just started knows nothing before the holder's next beat
// (HeartbeatInterval). Any process may ask, whether it contends or not. In
// non-exclusive mode ok is false.
func (n *Neli) Holder(role int) (h Holder, ok bool) {
	d, m := n.discovery(), len(n.arb.cells())
	if d == nil || m == 0 || role < 0 || role >= int(n.roles.Load()) {
		return Holder{}, false
	}
	s := d.standing(partitionOf(role, m))
	n.outward(&s)
	return s.Holder, s.Status == Held
}

// Watch yields who holds the partitions: first of each partition what is known now,
// then what changes; of a partition of which nothing is known yet, as soon as
// something is. That nobody holds a partition any more is a change like others
// (Vacant), be it by release or by silence. A new term of the same holder is one,
// too; a beat is not. Each is a statement about the past, as Holder's is.
//
// A consumer that is slow misses what was in between, and is told what is so when
// it asks for more; it holds nobody up, and costs a few bytes for each partition.
// There may be any number of Watches.
//
// The sequence ends when ctx does, with Close, and when this Neli fails (Await
// tells why). It has no goroutine, so that leaving the loop early leaves nothing
// behind. In non-exclusive mode it ends at once.
func (n *Neli) Watch(ctx context.Context) iter.Seq[Standing] {
	return func(yield func(Standing) bool) {
		d := n.discovery()
		if d == nil {
			return
		}
		w := d.watch()
		defer d.unwatch(w)
		for ctx.Err() == nil && n.State() == StateLive && n.ended() == nil {
			s, ok := d.change(w)
			if !ok {
				select {
				case <-w.bell:
				case <-ctx.Done():
				case <-n.closing:
				case <-n.done:
				}
				continue
			}
			n.outward(&s)
			s.partitions, s.roles = len(n.arb.cells()), int(n.roles.Load())
			if !yield(s) {
				return
			}
		}
	}
}

// outward makes a standing's token what the application sees.
func (n *Neli) outward(s *Standing) {
	if s.Status == Held {
		s.Holder.Token = n.set.outward(s.Holder.Token)
	}
}

// Member is a process of the group that has announced itself.
type Member struct {
	Name string // its Config.Name
	// ID is random: it tells this process from all others, and from those that had
	// its name before.
	ID   string
	Self bool // it is this process
	// Nominated: it may claim at least one partition. With Assigned nomination the
	// group has assigned it one; with Open it contends.
	Nominated bool
	Priority  int // its Config.Priority
	// Heard is when this process last heard it say so, by the wall clock, and Age how
	// long before the answer that was. For this process itself it is now.
	Heard time.Time
	Age   time.Duration
}

// Members returns the processes that belong to the group, by name, this one
// included if it is not an observer (observers say nothing, so nobody knows them).
//
// Each announces itself every five seconds; of more than 25, all together say five
// announcements a second. One that closes is gone at once; one that crashes or is cut
// off, after three announcements have not come (15 s). A process that has just started
// knows all others after one of each (5 s). What is said
// of Holder goes for this, too: it is a statement about the past, with its age. In
// non-exclusive mode, and after Close, it returns nil.
func (n *Neli) Members() []Member {
	d := n.discovery()
	if d == nil {
		return nil
	}
	ms := d.members()
	slices.SortFunc(ms, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return ms
}
