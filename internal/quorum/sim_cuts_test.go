package quorum

import (
	"testing"
)

// Network partitions, as in articles on leader election, in quiet worlds of five processes with a
// log each. Process i and log i are on the same machine.

// halves cuts the machines whose bit is set off from the others.
func (w *simWorld) halves(side int) {
	for i, p := range w.procs {
		var logs []int
		for log := range w.logs {
			if side>>i&1 == side>>log&1 {
				logs = append(logs, log)
			}
		}
		p.reachOnly(logs...)
	}
}

// settledBy runs until every role is led, and two leases longer. It returns the leader of role 0.
func (w *simWorld) settledBy() *simProc {
	w.Run(w.Now+20*simT, w.allLed)
	w.Run(w.Now+2*simT, nil)
	return w.leader()
}

// However five machines are cut in two, only the larger part has a leader. Once the cut has healed,
// there is one leader as well.
func TestNoSplitBrainInAnyPartitionOfFive(t *testing.T) {
	for side := range 1 << 4 { // machine 4 is always on side 0: the other cuts are mirror images
		simulateQuiet(t, 1, 5, 5, func(w *simWorld) {
			w.settledBy()
			w.halves(side)
			leader := w.settledBy()
			count := 0
			for i := range w.procs {
				if leader != nil && side>>i&1 == side>>leader.i&1 {
					count++
				}
			}
			if leader == nil || count < 3 {
				w.Note("cut %05b: leader %v, in a part of %d", side, leader, count)
			}
			w.halves(0)
			if w.settledBy() == nil {
				w.Note("cut %05b: nobody leads after it has healed", side)
			}
		})
	}
}

// Two halves cannot reach each other, but one machine reaches both. There is one leader, and it
// stays. When that machine is cut off from one half, the other half has a leader.
func TestOneLeaderWhenOneMachineReachesBothHalves(t *testing.T) {
	simulateQuiet(t, 10, 5, 5, func(w *simWorld) {
		w.settledBy()
		for _, p := range w.procs {
			switch {
			case p.i < 2:
				p.reachOnly(0, 1, 2)
			case p.i > 2:
				p.reachOnly(2, 3, 4)
			}
		}
		leader := w.settledBy()
		if leader == nil {
			w.Note("nobody leads between two halves")
			return
		}
		terms := w.count.terms
		w.Run(w.Now+10*simT, nil)
		if w.count.terms != terms {
			w.Note("halves take leadership from each other: %d terms", w.count.terms-terms)
		}
		w.halves(0b00111)
		if w.settledBy() == nil {
			w.Note("nobody leads in the half with three machines")
		}
	})
}
