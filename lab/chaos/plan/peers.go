package plan

import (
	"iter"
	"time"
)

// peerKinds are for five members with a log host in each, and no brokers: a log is killed, suspended, cut off or slow together
// with its member. At most two of the five logs are away at a time.
var peerKinds = []kind{
	{name: "peer killed", parts: func(d *dice) []Part { return []Part{d.member(KillMember, 1, 4)} }},
	{name: "two peers killed", parts: func(d *dice) []Part {
		return d.together(d.member(KillMember, 1, 4), d.member(KillMember, 1, 4))
	}},
	{name: "peer stopped", parts: func(d *dice) []Part { return []Part{d.member(StopMember, 1, 10)} }},
	{name: "peer killed, peer stopped", parts: func(d *dice) []Part {
		return d.together(d.member(KillMember, 1, 4), d.member(StopMember, 1, 10))
	}},
	{name: "peer cut off", parts: func(d *dice) []Part { return []Part{d.cut(CutMember, Both, 3, 9)} }},
	{name: "peer cut off one way", parts: func(d *dice) []Part { return []Part{d.cut(CutMember, d.oneWay(), 3, 9)} }},
	{name: "peers parted", parts: func(d *dice) []Part { return []Part{d.apart(CutMemberOne)} }},
	{name: "network split three to two", parts: func(d *dice) []Part { return []Part{d.apart(Split)} }},
	{name: "peer slow", parts: func(d *dice) []Part { return []Part{d.slow(Slow, 20, 200)} }},
	{name: "peer loses packets", parts: func(d *dice) []Part {
		p := d.target(Part{Action: Slow, Hold: d.seconds(4, 8)})
		p.Loss = 0.05 + 0.1*d.rng.Float64()
		return []Part{p}
	}},
	{name: "store slow", parts: func(d *dice) []Part { return []Part{d.slow(SlowStore, 50, 400)} }},
	{name: "peers restarted in turn", parts: func(d *dice) []Part {
		p := d.target(Part{Action: RestartMembers})
		p.Count = 2
		return []Part{p}
	}},
}

// apart separates a member from another one, or both from the others.
func (d *dice) apart(a Action) Part {
	p := d.cut(a, d.way(), 3, 9)
	p.To = d.rng.IntN(d.Members)
	return p
}

// PeerKinds is Kinds for runs without brokers.
func PeerKinds() []string {
	var names []string
	for _, k := range peerKinds {
		names = append(names, k.name)
	}
	return names
}

// PeerSteps is Steps for runs without brokers. A log that was restarted counts only when T has
// passed, so the next step waits for that.
func PeerSteps(seed uint64, size Size, t time.Duration) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for s := range steps(seed, size, peerKinds) {
			s.Quiet += t + t/2
			if !yield(s) {
				return
			}
		}
	}
}
