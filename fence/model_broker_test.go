package fence

// coordinate gives each step that the coordinator may take by itself.
func (w *modelWorld) coordinate(give modelStep) {
	ids := int8(1)
	if w.k.idPerTerm {
		ids = w.k.terms
	}
	for i := range ids {
		c := w.coords[i]
		if c.state == cPrepCommit || c.state == cPrepAbort {
			t := *w
			t.mark(i)
			give(&t, "markers are written")
		}
		if w.faults == 0 {
			continue
		}
		if c.state == cOngoing {
			t := *w
			t.faults--
			t.bump(&t.coords[i])
			give(&t, "transaction.timeout.ms: the coordinator aborts")
		}
		if w.k.expire && c.known && (c.state == cEmpty || c.state >= cCommit) {
			t := *w
			t.faults--
			t.coords[i] = coordinator{gen: c.gen, epoch: -1, last: -1}
			give(&t, "the coordinator forgets the id")
		}
	}
}

// bump raises the epoch and aborts the open transaction.
func (w *modelWorld) bump(c *coordinator) {
	c.last = -1
	if w.k.v2 {
		c.last = c.epoch
	}
	c.epoch++
	c.state = cPrepAbort
}

// mark writes the markers of a transaction that was committed or aborted.
func (w *modelWorld) mark(id int8) {
	c := &w.coords[id]
	committed := c.state == cPrepCommit
	var left [4]written
	n := 0
	for _, r := range w.open {
		switch {
		case r.actor == 0:
		case r.gen != c.gen || w.k.idPerTerm && r.actor-1 != id:
			left[n] = r
			n++
		case committed:
			w.commits(r.actor - 1)
		}
	}
	w.open = left
	w.fenced[c.gen] = max(w.fenced[c.gen], c.epoch)
	for j := range w.requests {
		if r := &w.requests[j]; r.kind == mProd && r.stage == 1 && r.gen == c.gen && !w.k.noVerify && (!w.k.idPerTerm || r.actor == id) {
			r.stage = 2
		}
	}
	c.state = cAbort
	if committed {
		c.state = cCommit
	}
}

// commits makes a record of term j visible to readers.
func (w *modelWorld) commits(j int8) {
	for i := j + 1; i < w.k.terms; i++ {
		if w.actors[i].firm {
			w.fault = fLate
		}
		if w.actors[i].read {
			w.actors[i].stale = true
		}
	}
	if w.actors[j].stale {
		w.fault = fRead
	}
	w.committed[j] = min(3, w.committed[j]+1)
}

func (w *modelWorld) reply(r request, answer, gen, epoch int8) {
	if r.awaited {
		a := &w.actors[r.actor]
		a.answer, a.aGen, a.aEpoch = answer, gen, epoch
	}
}

func (w *modelWorld) newID() int8 {
	if w.gens >= maxIDs-1 {
		w.fault = fFull
		return w.gens
	}
	w.gens++
	return w.gens
}

// arrive lets a request reach the coordinator or the partition. A request that is answered with
// "try again" stays where it is, as if it arrived later.
func (w *modelWorld) arrive(j int, give modelStep) {
	r := w.requests[j]
	t := *w
	t.requests[j] = request{}
	c := t.k.coord(&t.modelState, r.actor)
	busy := c.state == cPrepCommit || c.state == cPrepAbort
	switch r.kind {
	case mInit:
		if !busy || t.k.busyInit && c.state == cPrepCommit {
			w.arriveInit(&t, c, r, give)
		}
	case mAdd:
		switch {
		case !c.known || c.gen != r.gen || c.epoch != r.epoch:
			t.reply(r, rErr, 0, 0)
			give(&t, "AddPartitionsToTxn of %d: refused", r.actor+1)
		case !busy:
			c.state = cOngoing
			t.reply(r, rOK, 0, 0)
			give(&t, "AddPartitionsToTxn of %d", r.actor+1)
		}
	case mProd:
		t.arriveBatch(c, j, r, busy, give)
	case mEnd:
		t.arriveEnd(c, r, busy, give)
	}
}

func (w *modelWorld) arriveInit(t *modelWorld, c *coordinator, r request, give modelStep) {
	n := r.actor + 1
	switch {
	case !c.known:
		g := t.newID()
		*c = coordinator{known: true, gen: g, last: -1}
		t.reply(r, rOK, g, 0)
		give(t, "InitProducerId of %d: a new producer id", n)
	case r.epoch >= 0 && r.gen != c.gen:
		t.reply(r, rErr, 0, 0)
		give(t, "guarded InitProducerId of %d: fenced", n)
	case c.state == cOngoing:
		if t.k.noBump {
			c.state = cPrepAbort
		} else {
			t.bump(c)
		}
		t.reply(r, rConc, 0, 0)
		give(t, "InitProducerId of %d: the open transaction is aborted", n)
	case r.epoch >= 0:
		switch r.epoch {
		case c.epoch:
			c.last = c.epoch
			c.epoch++
			c.state = cEmpty
			t.reply(r, rOK, c.gen, c.epoch)
		case c.last:
			c.state = cEmpty
			t.reply(r, rOK, c.gen, c.epoch)
		default:
			t.reply(r, rErr, 0, 0)
		}
		give(t, "guarded InitProducerId of %d", n)
	default:
		if t.k.rotate && w.faults > 0 {
			u := *t
			u.faults--
			g := u.newID()
			*u.k.coord(&u.modelState, r.actor) = coordinator{known: true, gen: g, last: -1}
			u.reply(r, rOK, g, 0)
			give(&u, "InitProducerId of %d: epochs are used up, a new producer id", n)
		}
		if !t.k.noBump {
			c.epoch++
		}
		c.last = -1
		if c.state != cPrepCommit && c.state != cPrepAbort {
			c.state = cEmpty
		}
		t.reply(r, rOK, c.gen, c.epoch)
		give(t, "InitProducerId of %d: the epoch is raised", n)
	}
}

// arriveBatch lets the coordinator verify a batch, and then the partition append it.
func (w *modelWorld) arriveBatch(c *coordinator, j int, r request, busy bool, give modelStep) {
	n := r.actor + 1
	if r.stage == 0 && w.k.noVerify && !w.k.v2Cli {
		r.stage = 1
	}
	switch {
	case r.stage == 0 && (!c.known || c.gen != r.gen || c.epoch != r.epoch):
		w.reply(r, rErr, 0, 0)
		give(w, "Produce of %d: refused", n)
	case r.stage == 0 && busy:
	case r.stage == 0 && !w.k.v2Cli && c.state != cOngoing:
		w.reply(r, rErr, 0, 0)
		give(w, "Produce of %d: not in the transaction", n)
	case r.stage == 0:
		c.state = cOngoing
		r.stage = 1
		w.requests[j] = r
		give(w, "Produce of %d is verified", n)
	case r.stage == 2:
		w.reply(r, rErr, 0, 0)
		give(w, "batch of %d: its verification was cancelled", n)
	case r.epoch < w.fenced[r.gen]:
		w.reply(r, rErr, 0, 0)
		give(w, "batch of %d: an old epoch", n)
	default:
		w.fenced[r.gen] = r.epoch
		w.append(r)
		give(w, "batch of %d is appended", n)
	}
}

func (w *modelWorld) append(r request) {
	for i := range w.open {
		if w.open[i].actor == 0 {
			w.open[i] = written{r.gen, r.actor + 1}
			w.reply(r, rOK, 0, 0)
			return
		}
	}
	w.fault = fFull
}

func (w *modelWorld) arriveEnd(c *coordinator, r request, busy bool, give modelStep) {
	n := r.actor + 1
	preparing, ended := cPrepAbort, cAbort
	if r.commit {
		preparing, ended = cPrepCommit, cCommit
	}
	refuse := func() {
		w.reply(r, rErr, 0, 0)
		give(w, "EndTxn of %d: refused", n)
	}
	accept := func(what string) {
		w.reply(r, rOK, c.gen, c.epoch)
		give(w, "EndTxn(commit: %t) of %d: %s", r.commit, n, what)
	}
	again := w.k.v2Cli && c.epoch == r.epoch+1 // the same request, sent again
	same := again || !w.k.v2Cli && c.epoch == r.epoch
	switch {
	case !c.known || c.gen != r.gen:
		refuse()
	case c.state == cOngoing && c.epoch != r.epoch:
		refuse()
	case c.state == cOngoing:
		c.state = preparing
		if w.k.v2Cli {
			c.last = c.epoch
			c.epoch++
		}
		for i := r.actor + 1; r.commit && i < w.k.terms; i++ {
			if w.actors[i].firm {
				w.fault = fLate
			}
		}
		accept("accepted")
	case busy:
		if !same || c.state != preparing {
			refuse()
		}
	case c.state == cEmpty || w.k.v2Cli && !again:
		if !w.k.v2Cli || r.commit || c.epoch != r.epoch {
			refuse()
			return
		}
		c.state = cPrepAbort // V2: the abort of a transaction without partitions
		c.last = c.epoch
		c.epoch++
		accept("nothing to abort")
	case !same || c.state != ended:
		refuse()
	default:
		accept("done already")
	}
}
