package plan

import (
	"iter"
	"slices"
	"time"
)

// sentinelKinds are for members with a sentinel beside each, with brokers or without. They are added to
// all other kinds.
var sentinelKinds = []kind{
	{name: "sentinel alive, member killed", parts: func(d *dice) []Part { return []Part{d.member(KillMember, 2, 5)} }},
	{name: "sentinel killed", parts: func(d *dice) []Part { return []Part{d.member(KillSentinel, 1, 4)} }},
	{name: "sentinel stopped", parts: func(d *dice) []Part { return []Part{d.member(StopSentinel, 2, 8)} }},
	{name: "sentinel killed, member killed", parts: func(d *dice) []Part {
		return d.behind(d.member(KillSentinel, 7, 9), KillMember, 200*time.Millisecond)
	}},
	{name: "sentinel stopped, member killed", parts: func(d *dice) []Part {
		return d.behind(d.member(StopSentinel, 3, 9), KillMember, 200*time.Millisecond)
	}},
	{name: "sentinel alive, member stopped", parts: func(d *dice) []Part { return []Part{d.member(StopMember, 1, 8)} }},
	{name: "false members at the sentinel", parts: func(d *dice) []Part { return []Part{d.member(ForgeMembers, 2, 4)} }},
	{name: "member frozen", parts: func(d *dice) []Part { return []Part{d.member(FreezeMember, 1, 8)} }},
	{name: "member executes another program", parts: func(d *dice) []Part { return []Part{d.member(ExecMember, 3, 7)} }},
	{name: "files closed, member killed", parts: func(d *dice) []Part {
		return d.behind(d.member(CloseFiles, 4, 6), KillMember, 3*time.Second)
	}},
	// The member that is killed first meets the stranger's socket when it is started again. The one
	// that is killed second was not watched.
	{name: "a stranger's socket", parts: func(d *dice) []Part { return d.twice(d.member(StrangeSocket, 8, 10)) }},
	// The member that is killed second has registered through the proxy.
	{name: "proxy before the sentinel", parts: func(d *dice) []Part {
		first := d.member(ProxySentinel, 8, 10)
		first.Count = d.rng.IntN(4)
		return d.twice(first)
	}},
}

// twice kills the member of the first part's host soon, and its successor on the host later.
func (d *dice) twice(first Part) []Part {
	parts := d.behind(first, KillMember, 200*time.Millisecond)
	return append(parts, Part{Action: KillMember, With: true, After: 6 * time.Second, Hold: time.Second})
}

// behind adds a part that strikes the member of the first part's host.
func (d *dice) behind(first Part, a Action, after time.Duration) []Part {
	return []Part{first, {Action: a, With: true, After: after, Hold: d.between(500*time.Millisecond, 2*time.Second)}}
}

// SentinelKinds is Kinds of what is added in runs with sentinels.
func SentinelKinds() []string {
	var names []string
	for _, k := range sentinelKinds {
		names = append(names, k.name)
	}
	return names
}

// SentinelSteps yields a step about sentinels before each step of others. A log inside a killed member
// counts only when T has passed, so a step waits for that.
func SentinelSteps(others iter.Seq[Step], seed uint64, size Size, t time.Duration) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		next, stop := iter.Pull(others)
		defer stop()
		for s := range steps(seed, size, sentinelKinds) {
			s.Quiet += t + t/2
			if !yield(s) {
				return
			}
			if other, ok := next(); !ok || !yield(other) {
				return
			}
		}
	}
}

// CheckSentinels is Check for runs with sentinels, whose kinds of faults are added to others.
func CheckSentinels(names []string, others func([]string) error) error {
	return others(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(SentinelKinds(), name) }))
}
