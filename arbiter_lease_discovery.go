package neli

var _ discovery = (*leaseArbiter)(nil)

func (a *leaseArbiter) standing(p int) Standing {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	return a.describe(p, a.leases[p].standing(now), now)
}

// describe needs the lock.
func (a *leaseArbiter) describe(p int, s standing, now instant) Standing {
	d := a.leases[p].describe(s, now)
	d.Partition = p
	return d
}

func (a *leaseArbiter) watch() *watcher {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seats.watch()
}

func (a *leaseArbiter) unwatch(w *watcher) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seats.unwatch(w)
}

func (a *leaseArbiter) change(w *watcher) (Standing, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	p, s, ok := w.change(a.leases, now)
	if !ok {
		return Standing{}, false
	}
	return a.describe(p, s, now), true
}

func (a *leaseArbiter) members() []Member {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.membersNow(a.now())
}

// membersNow needs the lock.
func (a *leaseArbiter) membersNow(now instant) []Member {
	a.peers.expire(now)
	ms := a.peers.list(now)
	if !a.set.observer {
		wants := a.wants(now)
		ms = append(ms, Member{Name: a.set.name, ID: a.set.instance, Self: true, Priority: a.set.priority,
			Nominated: wants == nil || len(wants) > 0, Heard: now.time()})
	}
	return ms
}
