// Package plan draws the faults of a run from a seed. It is pure: it decides what happens, to which hosts, in which order and for
// how long. Only the present leader, at which a fault may aim, is determined when the fault is carried out.
package plan

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"
)

// Action is the kind of a part.
type Action int

const (
	KillMember     Action = iota // SIGKILL, and a new one after Hold
	KillMachine                  // the same, and at the same moment the member's links go dark for Hold
	StopMember                   // SIGSTOP for Hold
	RestartMembers               // closed and started again, Count of them in turn
	KillBroker                   // SIGKILL, and started again after Hold
	StopBroker                   // SIGSTOP for Hold
	StallDisk                    // a broker's disk answers nothing for Hold
	RestartBrokers               // controlled shutdown and start, all in turn
	CutMember                    // from all brokers
	CutMemberOne                 // from one broker
	CutBrokers                   // one broker from another
	CutBroker                    // from the other brokers and all members
	Slow                         // Delay and Jitter between a member and all brokers
	Lossy                        // Loss between all members and a broker
	SlowStore                    // Delay between all members and the store
	Split                        // two members are cut off from the other three
	SlowBroker                   // Delay and Jitter between a broker and the other brokers
	FillDisk                     // a broker's disk is full for Hold, and then the broker starts again
	SetClock                     // a broker's wall clock is off by Delay, and by Rate for each second of Hold
	NewTopic                     // all members closed, and started again with a new topic
)

// String returns the sort of an action.
func (a Action) String() string {
	switch a {
	case KillMember, KillMachine, KillBroker:
		return "killed"
	case StallDisk:
		return "stalled"
	case StopMember, StopBroker:
		return "stopped"
	case CutMember, CutMemberOne, CutBrokers, CutBroker, Split:
		return "cut off"
	case Lossy:
		return "packets lost"
	case Slow, SlowStore, SlowBroker:
		return "slow"
	case FillDisk:
		return "full"
	case SetClock:
		return "clock set"
	case NewTopic:
		return "begun anew"
	case RestartMembers, RestartBrokers:
		return "restarted"
	}
	return fmt.Sprintf("Action(%d)", int(a))
}

// Silences reports whether the member sends nothing while the action lasts, or nothing ever again.
func (a Action) Silences() bool {
	switch a {
	case KillMember, KillMachine, StopMember:
		return true
	default:
		return false
	}
}

// DisturbsBrokers reports whether the action disturbs brokers, or stops all members, while it lasts.
func (a Action) DisturbsBrokers() bool {
	switch a {
	case KillBroker, StopBroker, StallDisk, RestartBrokers, CutBrokers, CutBroker, Lossy, SlowBroker, FillDisk, SetClock, NewTopic:
		return true
	default:
		return false
	}
}

// Way is the direction of a cut.
type Way int

const (
	Both Way = iota
	Out      // packets from the first target are lost
	In       // packets to the first target are lost
)

func (w Way) String() string { return [...]string{"–", "→", "←"}[w] }

// BrokerSession is how long Kafka waits for a silent broker before it fences it: the default of broker.session.timeout.ms.
const BrokerSession = 9 * time.Second

// Part is one fault. A step may have several at once.
type Part struct {
	Action Action
	// Leader chooses the member that leads Role in Mode (0 or 1), if one does. Otherwise it is number Member.
	Leader        bool
	Mode, Role    int
	Member        int
	To            int
	Broker, Other int
	OfLog         bool // Broker is the one that leads the role's log, and Other the next one
	Count         int
	Way           Way
	After         time.Duration // since the step began
	Hold          time.Duration
	Delay, Jitter time.Duration
	Loss, Rate    float64
}

// Step is a set of parts that happen at once, and the quiet time after their repair.
type Step struct {
	Kind  string
	Parts []Part
	Quiet time.Duration
	// Impatient lets the next step begin before the groups are whole again.
	Impatient bool
}

// Size has the numbers of members, brokers and roles.
type Size struct{ Members, Brokers, Roles int }

// Kinds returns the names of all kinds that need no setting, or one of these.
func Kinds(with ...string) (names []string) {
	for _, k := range chosen(with) {
		names = append(names, k.name)
	}
	return names
}

func chosen(with []string) []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return k.with != "" && !slices.Contains(with, k.with) })
}

// Steps yields steps without end, the same ones for the same seed. All kinds that Kinds names occur, in random order, before any
// occurs again.
func Steps(seed uint64, size Size, with ...string) iter.Seq[Step] {
	return steps(seed, size, chosen(with))
}

func steps(seed uint64, size Size, kinds []kind) iter.Seq[Step] {
	d := &dice{rng: rand.New(rand.NewPCG(seed, 0x636861_6f73)), Size: size}
	return func(yield func(Step) bool) {
		for {
			for _, i := range d.rng.Perm(len(kinds)) {
				s := Step{Kind: kinds[i].name, Parts: kinds[i].parts(d), Quiet: d.seconds(1, 3), Impatient: d.rng.IntN(4) == 0}
				if !yield(s) {
					return
				}
			}
		}
	}
}

// First moves the kinds in names, which are named as in Kinds, to the beginning of the first size steps, since a short run has no
// time for all kinds.
func First(steps iter.Seq[Step], names []string, size int) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		var round []Step
		for s := range steps {
			if len(round) < size {
				if round = append(round, s); len(round) < size {
					continue
				}
				rank := func(s Step) int {
					if i := slices.Index(names, s.Kind); i >= 0 {
						return i
					}
					return len(names)
				}
				slices.SortStableFunc(round, func(a, b Step) int { return rank(a) - rank(b) })
				for _, s := range round {
					if !yield(s) {
						return
					}
				}
				continue
			}
			if !yield(s) {
				return
			}
		}
	}
}

// Only yields the steps of some kinds, named as Kinds does.
func Only(steps iter.Seq[Step], names []string) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for s := range steps {
			if slices.Contains(names, s.Kind) && !yield(s) {
				return
			}
		}
	}
}

// Check returns an error for a name that is not one of the kinds.
func Check(names, kinds []string) error {
	for _, name := range names {
		if !slices.Contains(kinds, name) {
			return fmt.Errorf("no fault here is called %q; there are %q", name, kinds)
		}
	}
	return nil
}

type dice struct {
	rng *rand.Rand
	Size
}

func (d *dice) between(from, to time.Duration) time.Duration {
	return from + time.Duration(d.rng.Int64N(int64(to-from)))
}

func (d *dice) seconds(from, to int) time.Duration {
	return d.between(time.Duration(from)*time.Second, time.Duration(to)*time.Second)
}

// target aims at a leader four times out of five, since a fault of another member shows less.
func (d *dice) target(p Part) Part {
	p.Leader = d.rng.IntN(5) > 0
	p.Mode, p.Role, p.Member = d.rng.IntN(4)/3, d.rng.IntN(d.Roles), d.rng.IntN(d.Members)
	return p
}

func (d *dice) member(a Action, from, to int) Part {
	return d.target(Part{Action: a, Hold: d.seconds(from, to)})
}

func (d *dice) broker(a Action, from, to int) Part {
	b := d.rng.IntN(d.Brokers)
	return Part{Action: a, Broker: b, Other: (b + 1 + d.rng.IntN(d.Brokers-1)) % d.Brokers, Way: d.way(), Hold: d.seconds(from, to)}
}

func (d *dice) cut(a Action, w Way, from, to int) Part {
	return d.target(Part{Action: a, Way: w, Broker: d.rng.IntN(d.Brokers), Hold: d.seconds(from, to)})
}

func (d *dice) slow(a Action, from, to int) Part {
	ms := time.Millisecond
	delay := d.between(time.Duration(from)*ms, time.Duration(to)*ms)
	return d.target(Part{Action: a, Delay: delay, Jitter: delay / 2, Hold: d.seconds(4, 8)})
}

func (d *dice) lossy() Part {
	return Part{Action: Lossy, Broker: d.rng.IntN(d.Brokers), Loss: 0.05 + 0.15*d.rng.Float64(), Hold: d.seconds(4, 8)}
}

func (d *dice) oneWay() Way { return Out + Way(d.rng.IntN(2)) }
func (d *dice) way() Way    { return Way(d.rng.IntN(3)) }

// together adds a second part, which begins a moment after the first.
func (d *dice) together(a, b Part) []Part {
	b.After = d.between(0, 2*time.Second)
	return []Part{a, b}
}
