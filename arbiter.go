package neli

import (
	"context"
	"iter"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/kafkalog"
	"github.com/goneli/neli/internal/nonexclusive"
	"github.com/goneli/neli/internal/term"
)

// arbiter decides for each unit whether this process leads it. In exclusive mode it is
// elector.Elector, in non-exclusive mode nonexclusive.Arbiter. Its decisions are in a term table.
type arbiter interface {
	// Run works until ctx is done, or until it was told to close and holds nothing any
	// more, or until a permanent error, which it returns. No goroutine of the arbiter is
	// left when Run returns.
	Run(ctx context.Context) error
	// Set changes what the Neli wants. It does not block.
	Set(elector.Desired)
	// Collect returns the changes for the application and marks them as delivered.
	Collect() []term.Change
	// Peek returns the losses and revocations that Collect would return, and does not mark them as delivered.
	Peek() []term.Change
	// Drained tells the arbiter that the application has finished the work of the term
	// with this id on these units, which were revoked.
	Drained(units []int, id int64)
}

// core bundles an arbiter with its term table and, in exclusive mode, its Elector.
type core struct {
	arbiter
	terms   *term.Table      // only the methods that need no lock of the arbiter
	elector *elector.Elector // the arbiter in exclusive mode; nil in non-exclusive mode
}

// newCore returns the core on logs or clients that were opened.
func (s *settings) newCore(on kafkalog.Opened, clocks clock.Clock, app application) core {
	h := s.threshold()
	terms := term.New(h.young, s.frozen.Clock(clocks.Glance))
	if s.Mode == NonExclusive {
		return core{arbiter: nonexclusive.New(s.nonExclusive(clocks, app), nonexclusive.Clients{Topic: on.Topic, Producer: on.Producer, Member: on.Member}, terms), terms: terms}
	}
	set := s.elector(app)
	set.Lists = kafkalog.Lists(on.Log)
	set.Opened = func(ctx context.Context, id string) { s.opened(ctx, on.Log, id) }
	e := elector.NewElector(set, on.Log, on.Nominator, terms, clocks.Now, s.logger)
	return core{arbiter: e, terms: terms, elector: e}
}

// nonExclusive returns the settings of non-exclusive mode.
func (s *settings) nonExclusive(clocks clock.Clock, app application) *nonexclusive.Settings {
	return &nonexclusive.Settings{Topic: s.topic, T: s.HeartbeatTimeout, Broadcast: s.broadcast, HandoverOverlap: s.handoverOverlap,
		StarvedAfter: s.starvedAfter, Absence: s.absence, GoneAfter: s.goneAfter, Alive: app.alive, Deaf: app.deaf, Now: clocks.Glance, Logger: s.logger}
}

// elector returns the elector's settings. app is nil if nobody asks about the application.
func (s *settings) elector(app application) *elector.Settings {
	set := &elector.Settings{
		Process:           s.process,
		Name:              s.Name,
		Group:             s.LeaderGroupID,
		T:                 s.HeartbeatTimeout,
		Rho:               s.MaxClockDrift,
		HeartbeatInterval: s.HeartbeatInterval,
		DrainTimeout:      s.DrainTimeout,
		SuccessorWait:     s.successorWait,
		RejoinWait:        s.rejoinWait,
		Absence:           s.absence,
		Nominated:         s.Nomination == NominationAssigned,
		Observer:          s.Observer,
		Advertise:         s.Advertise,
		Zone:              s.Zone,
		MaxRoles:          s.MaxRoles,
		Majority:          s.majority,
		TokenBase:         s.TokenBase,
		Rebalance:         !s.DisableRebalance,
		Requests:          s.Requests != nil,
		Random:            s.random,
	}
	if app != nil {
		set.Alive, set.Deaf = app.alive, app.deaf
	}
	s.preparing(set)
	if s.Preference != nil {
		set.Preference = func(m elector.Member, role int) int {
			return s.Preference(Member{Name: m.Name, ID: m.Process, Priority: m.Priority, Advertise: m.Advertise, Zone: m.Zone}, role)
		}
	}
	return set
}

// units maps roles to units of the term table. A unit is what a term covers: in exclusive mode a
// role, in non-exclusive mode a partition, whose roles are led together.
type units struct {
	partitions int  // M; 0 until it is known
	perRole    bool // a unit is a role
}

func (n *Neli) units() units { return units{n.core.terms.Partitions(), n.set.Mode == Exclusive} }

// of returns the unit of a role.
func (u units) of(role int) int {
	if u.perRole {
		return role
	}
	return partitionOf(role, u.partitions)
}

// roles yields the roles of a unit that are below a bound, ascending.
func (u units) roles(unit, below int) iter.Seq[int] {
	if !u.perRole {
		return rolesOn(unit, u.partitions, below)
	}
	return func(yield func(int) bool) {
		if unit < below {
			yield(unit)
		}
	}
}
