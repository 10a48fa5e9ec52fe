package balance

import (
	"errors"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/placement"
)

// Errors of Transfer. Package neli has public errors for these.
var (
	ErrNotLeader      = errors.New("neli: this process does not lead the role")
	ErrLeadsAlready   = errors.New("neli: the member leads the role already")
	ErrNotTransferred = errors.New("neli: another member claimed first")
)

const (
	// MinTenure is how long a role stays after it was moved for balance or preference. It
	// limits the moves between members whose preferences contradict each other.
	MinTenure = 30 * time.Second
	// levelEvery is how often a holder checks whether it has more than its share, and
	// movePause the pause before it hands over more.
	levelEvery = time.Second
	movePause  = 200 * time.Millisecond
	// maxPutOff is how long a holder that is behind may postpone handing over.
	maxPutOff = time.Minute
	// MaxBatch limits how many roles are handed over at a time.
	MaxBatch = 10_000
)

// Mover decides which roles a holder hands over although it could keep them, and follows each
// handover until its outcome is known. It knows no records: the caller passes in the plan and the
// holders, and carries out the result.
type Mover struct {
	lookAt         clock.Mono
	level          bool       // there was nothing to hand over at the last look
	seen           Placed     // what that look was based on
	patience       clock.Mono // put off until then, since this process is behind; 0: not put off
	uneven         clock.Mono // since when there are roles to hand over; 0: there are none
	inFlight       []Move     // handovers in progress
	cool           cooldowns
	shares         []*share   // calls of Rebalance that have not returned
	called, shared uint64     // how many calls there were, and how many roles moved during them
	overfull       bool       // it was said that this process holds more roles than it wants
	willing        clock.Mono // since when this process is willing to lead; 0: it is not
}

// Move is a handover whose outcome is awaited.
type Move struct {
	Partition int
	Role      int32 // one of its roles
	Count     int   // how many roles it has; 0 for a Transfer
	Token     int64
	To        string
	Began     clock.Mono
	ID        int // of a Transfer; 0: it is for balance
}

// Fate is the state of a move's role.
type Fate struct {
	Held bool   // by any process
	Ours bool   // by this process, in the term being handed over
	Kept bool   // the handover was called off
	By   string // the holder

	Longer time.Duration // how much longer than others it may take, since the member prepares the role
	Spared bool          // the member prepares roles, and is there: a handover that was called off is not its failure
}

// Placed counts the events that may leave roles to hand over: changes of holders, handovers that were
// called off, and terms of which the application was told.
type Placed struct {
	Holders   uint64
	CalledOff uint64
	Told      uint64
}

// untaken is a handover for balance that its addressee did not take.
type untaken struct {
	Move
	Cooldown time.Duration
}

// Await makes Resolve follow a handover that begins.
func (m *Mover) Await(v Move) { m.inFlight = append(m.inFlight, v) }

// LooksAt is when to look for roles to hand over.
func (m *Mover) LooksAt() clock.Mono { return m.lookAt }

// Waits reports whether the outcome of a handover is awaited.
func (m *Mover) Waits() bool { return len(m.inFlight) > 0 }

// IsSteady reports whether this process has been willing to lead for so long that others hand roles over to it.
func (m *Mover) IsSteady(after time.Duration, now clock.Instant) bool {
	return m.willing != 0 && now.Mono.Sub(m.willing) >= after
}

// Rests reports whether a process is in cooldown, and Doubts whether the next handover to it is a
// trial with one role.
func (m *Mover) Rests(id string, now clock.Mono) bool { return m.cool.leaves(id, now) }

func (m *Mover) Doubts(id string) bool { return m.cool.doubts(id) }

// Contend notes whether this process is willing to lead.
func (m *Mover) Contend(willing bool, now clock.Instant) {
	switch {
	case !willing:
		m.willing = 0
	case m.willing == 0:
		m.willing = now.Mono
	}
}

// Looks reports whether to look now for roles to hand over; may is false if this process does not.
// Looks are levelEvery apart (movePause after handovers); there are none during one for balance.
func (m *Mover) Looks(may bool, now clock.Instant) bool {
	if balancing := slices.ContainsFunc(m.inFlight, func(v Move) bool { return v.ID == 0 }); balancing {
		may = false
	}
	if now.Mono < m.lookAt {
		return false
	}
	m.lookAt = now.Mono.Add(levelEvery)
	return may
}

// PutOff reports whether handing over for balance is postponed because this process is behind in
// all logs: answers would come too late, and there is enough to read. Where round trips are always
// long it would be behind for ever, so the postponement is limited.
func (m *Mover) PutOff(behind bool, now clock.Instant) bool {
	if !behind {
		m.patience = 0
		return false
	}
	if m.patience == 0 {
		m.patience = now.Mono.Add(maxPutOff)
	}
	return now.Mono < m.patience
}

// Needless reports whether looking for roles to hand over is needless: there were none at the last look,
// nothing has changed since, and no call of Rebalance is in progress.
func (m *Mover) Needless(replanned bool, is Placed) bool {
	m.level = m.level && !replanned && is == m.seen
	m.seen = is
	return m.level && !m.Sharing()
}

// Weigh takes the moves of the plan, and returns those to begin now: all, once there have been some for
// 2 s, or at once while a call of Rebalance is in progress. tenured reports whether some roles may be moved only later.
func (m *Mover) Weigh(todo []placement.Move, tenured func() bool, now clock.Instant) []placement.Move {
	switch {
	case len(todo) == 0:
		m.uneven = 0
		m.level = !tenured()
	case m.Sharing():
		return todo
	case m.uneven == 0:
		m.uneven = now.Mono
	case now.Mono.Sub(m.uneven) >= 2*levelEvery:
		return todo
	}
	return nil
}

// Resolve determines the outcome of the handovers in progress. It waits for limit + Longer at most.
// A member whose fault it is that a handover for balance failed is in cooldown from now on.
func (m *Mover) Resolve(of func(Move) Fate, limit time.Duration, now clock.Instant) (ended []request.Outcome, failed []untaken) {
	before := len(m.inFlight)
	m.inFlight = slices.DeleteFunc(m.inFlight, func(v Move) bool {
		f := of(v)
		over, err := f.verdict(v.To, now.Mono.Sub(v.Began) >= limit+f.Longer)
		switch {
		case !over:
			return false
		case v.ID != 0:
			ended = append(ended, request.Outcome{ID: v.ID, Err: err})
		case err != nil && f.Spared && f.Kept: // it was at work on other roles, or has failed this one only
		case err != nil && v.Began < m.cool[v.To].until.Add(-m.cool[v.To].long): // it began before the cooldown did
		case err != nil:
			if m.cool == nil {
				m.cool = cooldowns{}
			}
			failed = append(failed, untaken{v, m.cool.failed(v.To, err != request.ErrNoAnswer, now.Mono)})
		default:
			delete(m.cool, v.To)
			m.taken(v)
		}
		m.level = false // a failure puts a member in cooldown
		return true
	})
	if len(m.inFlight) == 0 && before > 0 {
		m.lookAt = min(m.lookAt, now.Mono.Add(movePause))
	}
	return ended, failed
}

// verdict reports whether a handover to a process is over, and its error; late means that the time for it has passed.
func (f Fate) verdict(to string, late bool) (over bool, err error) {
	switch {
	case f.Ours && f.Kept:
		return true, request.ErrNoAnswer
	case f.Held && !f.Ours && f.By == to:
		return true, nil
	case (!f.Held || f.Ours) && !late:
		return false, nil
	}
	return true, ErrNotTransferred
}

const (
	// cooldown is how long a process gets nothing after it did not claim what it was given. It
	// doubles with each further failure, up to maxCooldown. It is short at first: where many
	// processes start on few cores, a process that answers too late is busy and will soon
	// answer, and others lead more than their share meanwhile.
	cooldown    = 5 * time.Second
	maxCooldown = time.Minute
	// maxRestraint is maxCooldown for a process that answered and did not claim. That has ended a
	// term, which silence does not.
	maxRestraint = time.Hour
)

// cooldowns are the processes that did not claim what they were given.
type cooldowns map[string]failure

// failure is a process in cooldown until `until`; `long` doubles with each failure.
type failure struct {
	long  time.Duration
	until clock.Mono
}

// leaves reports whether a process is in cooldown, so that it gets nothing.
func (c cooldowns) leaves(id string, now clock.Mono) bool {
	f, failed := c[id]
	return failed && now < f.until
}

// doubts reports whether a process did not claim what it was last given. The next handover to it is a
// trial with one role.
func (c cooldowns) doubts(id string) bool {
	_, failed := c[id]
	return failed
}

// failed begins the cooldown of a process that did not claim what it was given, and returns how
// long it lasts; ended reports whether a term was ended for that. An old failure does not count.
func (c cooldowns) failed(id string, ended bool, now clock.Mono) time.Duration {
	for other, f := range c {
		if now >= f.until.Add(max(f.long, maxCooldown)) {
			delete(c, other)
		}
	}
	long, limit := cooldown, maxCooldown
	if ended {
		limit = maxRestraint
	}
	if f, before := c[id]; before {
		long = max(f.long, min(2*f.long, limit))
	}
	c[id] = failure{long, now.Add(long)}
	return long
}
