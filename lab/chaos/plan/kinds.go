package plan

import "time"

// kind makes the parts of one kind of step. At any time at most one broker is disturbed, or one pair of brokers separated: with
// three replicas, of which two must be in sync, the cluster is built to survive that.
type kind struct {
	name  string
	with  string // the setting that it needs; empty for none
	parts func(d *dice) []Part
}

// Settings that some kinds need.
const (
	SlowFollowers = "slow followers"
	FullDisks     = "full disks"
	Clocks        = "clocks"
	NewTopics     = "new topics"
)

var kinds = []kind{
	{name: "member killed", parts: func(d *dice) []Part { return []Part{d.member(KillMember, 1, 4)} }},
	{name: "member stopped", parts: func(d *dice) []Part { return []Part{d.member(StopMember, 1, 10)} }},
	{name: "member cut off", parts: func(d *dice) []Part { return []Part{d.cut(CutMember, Both, 3, 9)} }},
	{name: "member cut off one way", parts: func(d *dice) []Part { return []Part{d.cut(CutMember, d.oneWay(), 3, 9)} }},
	{name: "member cut off from one broker", parts: func(d *dice) []Part { return []Part{d.cut(CutMemberOne, d.way(), 3, 9)} }},
	{name: "member slow", parts: func(d *dice) []Part { return []Part{d.slow(Slow, 20, 200)} }},
	{name: "packets lost", parts: func(d *dice) []Part { return []Part{d.lossy()} }},
	{name: "store slow", parts: func(d *dice) []Part { return []Part{d.slow(SlowStore, 50, 400)} }},
	{name: "members restarted in turn", parts: func(d *dice) []Part {
		p := d.target(Part{Action: RestartMembers})
		p.Count = 2
		return []Part{p}
	}},
	{name: "broker killed", parts: func(d *dice) []Part { return []Part{d.broker(KillBroker, 1, 4)} }},
	{name: "broker stopped", parts: func(d *dice) []Part { return []Part{d.broker(StopBroker, 2, 8)} }},
	{name: "broker cut off", parts: func(d *dice) []Part { return []Part{d.broker(CutBroker, 3, 8)} }},
	{name: "brokers parted", parts: func(d *dice) []Part { return []Part{d.broker(CutBrokers, 3, 8)} }},
	// This is longer than the session of a silent broker (9 s), so that Kafka fences it and elects other leaders for
	// its partitions, and the broker wakes without knowing that.
	{name: "broker frozen past its session", parts: func(d *dice) []Part { return []Part{d.broker(StopBroker, 15, 22)} }},
	// acks=all waits up to 1.5 times replica.lag.time.max.ms (45 s) for a follower that cannot fetch.
	{name: "link between brokers cut for long", parts: func(d *dice) []Part { return []Part{d.broker(CutBrokers, 12, 40)} }},
	{name: "brokers restarted in turn", parts: func(*dice) []Part { return []Part{{Action: RestartBrokers}} }},
	{name: "member stopped, broker killed", parts: func(d *dice) []Part {
		return d.together(d.member(StopMember, 3, 8), d.broker(KillBroker, 1, 3))
	}},
	{name: "member killed, broker stopped", parts: func(d *dice) []Part {
		return d.together(d.member(KillMember, 1, 4), d.broker(StopBroker, 2, 6))
	}},
	{name: "member cut off, member stopped", parts: func(d *dice) []Part {
		a, b := d.cut(CutMember, d.way(), 3, 8), d.member(StopMember, 3, 8)
		b.Mode, b.Role = a.Mode, (a.Role+1)%d.Roles
		return d.together(a, b)
	}},
	// Up to half a second each way: acks=all waits for such a follower, which stays in sync.
	{name: "broker slow to follow", with: SlowFollowers, parts: func(d *dice) []Part {
		p := d.broker(SlowBroker, 8, 20)
		p.Way, p.Delay = Both, d.between(50*time.Millisecond, 500*time.Millisecond)
		p.Jitter = p.Delay / 2
		return []Part{p}
	}},
	{name: "broker's disk full", with: FullDisks, parts: func(d *dice) []Part { return []Part{d.broker(FillDisk, 10, 20)} }},
	{name: "broker's clock stepped", with: Clocks, parts: func(d *dice) []Part {
		p := d.broker(SetClock, 5, 15)
		p.Delay = d.between(-20*time.Second, 20*time.Second)
		return []Part{p}
	}},
	{name: "broker's clock slewed", with: Clocks, parts: func(d *dice) []Part {
		p := d.broker(SetClock, 10, 20)
		p.Rate = 0.1 - 0.2*float64(d.rng.IntN(2)) // chrony slews by up to 8 %, adjtimex by up to 10 %
		return []Part{p}
	}},
	{name: "group begun anew", with: NewTopics, parts: func(*dice) []Part { return []Part{{Action: NewTopic}} }},
}
