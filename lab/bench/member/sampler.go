package member

import (
	"time"

	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/witness"
)

// Gap is the pause between two samples beyond which the process may have been stopped.
// A busy machine makes shorter ones.
const Gap = 100 * time.Millisecond

// A sampler checks again and again whether a Contender leads.
type sampler struct {
	ask    func() bool
	tell   func(Line)
	change chan time.Duration // of the interval
	now    chan chan struct{} // requests for a sample at once

	prev  time.Duration // when the question before this one was asked
	told  time.Duration // when the last reported question was asked
	leads bool
	any   bool
}

// still is how often a leader reports that it still leads, so that this is known if it is killed.
const still = 50 * time.Millisecond

func startSampler(c Contender, every time.Duration, tell func(Line)) *sampler {
	s := &sampler{ask: c.Leads, tell: tell, change: make(chan time.Duration), now: make(chan chan struct{})}
	go s.run(every)
	return s
}

// run samples forever. After a suspension the ticker fires at once, so the first answer is that of a process that has just
// woken.
func (s *sampler) run(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.sample()
		case done := <-s.now:
			s.sample()
			close(done)
		case every = <-s.change:
			tick.Stop()
			if every > 0 {
				tick.Reset(every)
			}
			s.any = false // the pause was asked for, so it is not a gap
		}
	}
}

func (s *sampler) sample() {
	asked := witness.Now()
	leads := s.ask()
	at := witness.Now()
	paused := s.any && asked-s.prev > Gap
	if !s.any || leads != s.leads || paused || leads && asked-s.told >= still {
		s.told = asked
		s.tell(Line{Say: SaySample, At: at, Sample: &measure.Sample{Asked: asked, At: at, Prev: s.prev, Leads: leads, Gap: paused}})
	}
	s.prev, s.leads, s.any = asked, leads, true
}

func (s *sampler) set(every time.Duration) { s.change <- every }

// pass returns after one more sample.
func (s *sampler) pass() {
	done := make(chan struct{})
	s.now <- done
	<-done
}
