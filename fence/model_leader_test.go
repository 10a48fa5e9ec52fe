package fence

// take moves on to the step that follows.
func (a *actor) take(from step, ok bool) {
	switch to := after(from, ok); {
	case to == ask:
		a.pc = pAsk
	case to == initialise:
		a.pc = pSend
	case to == check:
		a.pc = pCheck
	case to == begin && from == check:
		a.pc = pRead // work is called, and reads its state
	case to == begin, to == produce:
		a.pc = pProd
	case to == commit:
		a.pc = pEnd
	default:
		a.pc = pStop
	}
}

// act calls give with what one actor may do next.
func (w *modelWorld) act(i int8, give modelStep) {
	k, n := w.k, i+1
	t := *w
	a := &t.actors[i]
	switch w.actors[i].pc {
	case pRead0:
		a.read, a.stale, a.pc = true, false, pAsk
		give(&t, "%d reads the state", n)
	case pAsk:
		lasts := k.valid(&w.modelState, i)
		a.take(ask, lasts)
		give(&t, "%d asks, before it initialises: %t", n, lasts)
	case pSend:
		if t.send(request{kind: mInit, actor: i, gen: -1, epoch: -1, awaited: true}) {
			a.pc = pWaitI
		}
		give(&t, "%d sends InitProducerId", n)
	case pCheck:
		w.check(i, give)
	case pRead:
		w.reads(i, give)
	case pProd:
		kind, next := mAdd, pWaitA
		if k.v2Cli {
			kind, next = mProd, pWaitP
		}
		if t.send(request{kind: kind, actor: i, gen: a.gen, epoch: a.epoch, awaited: true}) {
			a.pc = next
		}
		give(&t, "%d sends the partition or the batch", n)
	case pBatch:
		if t.send(request{kind: mProd, actor: i, gen: a.gen, epoch: a.epoch, awaited: true}) {
			a.pc = pWaitP
		}
		give(&t, "%d sends Produce", n)
	case pEnd:
		w.end(i, give)
	case pAbort:
		if t.send(request{kind: mEnd, actor: i, gen: a.gen, epoch: a.epoch, awaited: true}) {
			a.pc = pWaitX
		}
		give(&t, "%d sends EndTxn(abort)", n)
	case pErr:
		a.pc = pAuto
		give(&t, "the client of %d recovers by itself", n)
	case pAuto:
		r := request{kind: mInit, actor: i, gen: a.gen, epoch: a.epoch, awaited: true}
		if k.recovery == unguarded {
			r.gen, r.epoch = -1, -1
		}
		if t.send(r) {
			a.pc = pWaitR
		}
		give(&t, "the client of %d sends InitProducerId by itself", n)
	case pWaitI, pWaitA, pWaitP, pWaitC, pWaitX, pWaitR:
		w.await(i, give)
	}
}

func (w *modelWorld) check(i int8, give modelStep) {
	k := w.k
	if k.early && w.lead <= i {
		return // its term has not begun, so it waits
	}
	t := *w
	a := &t.actors[i]
	lasts := k.valid(&w.modelState, i)
	a.firm = a.firm || lasts
	skipped := k.unchecked || k.atCommit || k.checkOnce && a.later
	a.later = true
	a.take(check, lasts || skipped)
	give(&t, "%d asks, after its init: %t", i+1, lasts)
}

// reads lets an actor read the state. A reader that reads up to the end waits for other transactions.
func (w *modelWorld) reads(i int8, give modelStep) {
	k := w.k
	if w.other && !k.readStable && !k.readFirst {
		return
	}
	t := *w
	a := &t.actors[i]
	if !k.readFirst {
		a.read, a.stale = true, false
		for j := range i {
			a.stale = a.stale || w.other && w.committed[j] > 0
		}
	}
	a.take(begin, true)
	give(&t, "%d reads the state, and begins", i+1)
}

func (w *modelWorld) end(i int8, give modelStep) {
	t := *w
	a := &t.actors[i]
	if w.k.atCommit && !a.asked {
		a.asked = true
		if !w.k.valid(&w.modelState, i) {
			a.pc = pStop
		}
		give(&t, "%d asks before its commit", i+1)
		return
	}
	a.asked = false
	if t.send(request{kind: mEnd, actor: i, gen: a.gen, epoch: a.epoch, awaited: true, commit: true}) {
		a.pc = pWaitC
	}
	give(&t, "%d sends EndTxn(commit)", i+1)
	if w.k.aborts {
		t = *w
		t.actors[i].pc = pAbort
		give(&t, "%d decides to abort", i+1)
	}
}

// refuse handles a step of a transaction that has failed.
func (w *modelWorld) refuse(i int8, from step) {
	a := &w.actors[i]
	if w.k.recovery != noRecovery {
		a.pc = pErr
	} else {
		a.take(from, false)
		a.later = true
	}
	if i == w.k.terms-1 && w.k.valid(&w.modelState, i) {
		if w.again++; w.again > w.k.bound() {
			w.fault = fAgain
		}
	}
}

// await calls give with what a waiting actor may find: its answer, or that it has waited long enough.
func (w *modelWorld) await(i int8, give modelStep) {
	if w.actors[i].answer != rNone {
		t := *w
		answer := t.actors[i]
		t.actors[i].answer, t.actors[i].aGen, t.actors[i].aEpoch = rNone, 0, 0
		t.answered(i, answer)
		give(&t, "%d takes the answer: %s", i+1, [...]string{"", "OK", "refused", "CONCURRENT_TRANSACTIONS"}[answer.answer])
	}
	if w.faults == 0 {
		return
	}
	for _, lost := range []bool{false, true} {
		t := *w
		t.faults--
		t.leave(i, lost)
		t.answered(i, actor{answer: rErr})
		give(&t, "%d gives up waiting; the request is lost: %t", i+1, lost)
	}
	switch w.actors[i].pc {
	case pWaitC:
		t := *w
		t.faults--
		t.leave(i, false)
		t.actors[i].pc = pEnd
		give(&t, "%d sends its EndTxn again", i+1) // the client does so by itself
	case pWaitP:
		if w.k.aborts {
			t := *w
			t.faults--
			t.leave(i, false)
			t.actors[i].pc = pAbort
			give(&t, "%d gives up waiting for Produce, which is under way, and aborts", i+1)
		}
	}
}

func (w *modelWorld) answered(i int8, got actor) {
	a := &w.actors[i]
	ok := got.answer == rOK
	switch a.pc {
	case pWaitI:
		if ok {
			a.gen, a.epoch, a.inited = got.aGen, got.aEpoch, true
		}
		a.take(initialise, ok)
	case pWaitA:
		if ok {
			a.pc = pBatch
			return
		}
		w.refuse(i, produce)
	case pWaitP:
		if ok {
			a.take(produce, true)
			return
		}
		w.refuse(i, produce)
	case pWaitC, pWaitX:
		if !ok {
			w.refuse(i, commit)
			return
		}
		a.gen, a.epoch = got.aGen, got.aEpoch
		a.done++
		if a.take(commit, true); a.done >= w.k.work {
			a.pc = pDone
		}
	case pWaitR:
		switch got.answer {
		case rOK:
			a.gen, a.epoch, a.pc = got.aGen, got.aEpoch, pProd // without a question whether the term lasts
		case rConc:
			a.pc = pAuto
		default:
			a.pc = pAsk // the client can no longer be used
		}
	}
}
