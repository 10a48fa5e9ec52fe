package plan

import (
	"iter"
	"time"
)

// failOver is a kind of fault after which the time without a leader is measured. It strikes the leader of a role, or the
// broker that leads the role's log.
type failOver struct {
	name string
	part Part
}

// failOvers is the closed list of these kinds. A fault of a member lasts as long as its replacement may take with this T. A
// fault of a broker lasts longer than its session. Two brokers are separated for longer than acks=all waits for a follower.
func failOvers(t time.Duration) []failOver {
	member, broker, pair := 2*t+2*time.Second, BrokerSession+11*time.Second, 50*time.Second
	return []failOver{
		{"process killed", Part{Action: KillMember, Hold: member}},
		{"machine killed", Part{Action: KillMachine, Hold: member}},
		{"process suspended", Part{Action: StopMember, Hold: member}},
		{"packets to brokers lost", Part{Action: CutMember, Way: Out, Hold: member}},
		{"packets from brokers lost", Part{Action: CutMember, Way: In, Hold: member}},
		{"cut off from brokers", Part{Action: CutMember, Hold: member}},
		{"cut off from the log's broker", Part{Action: CutMemberOne, OfLog: true, Hold: member}},
		{"broker killed", Part{Action: KillBroker, OfLog: true, Hold: broker}},
		{"broker suspended", Part{Action: StopBroker, OfLog: true, Hold: broker}},
		{"broker's disk stalled", Part{Action: StallDisk, OfLog: true, Hold: broker}},
		{"brokers parted", Part{Action: CutBrokers, OfLog: true, Hold: pair}},
	}
}

// FailOvers yields n steps of each kind, all kinds before any occurs again, and strikes one role after the other. The quiet
// times differ, so that the faults of a kind come at different moments between two heartbeats.
func FailOvers(n int, t time.Duration, roles int) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for i := range n {
			for _, k := range failOvers(t) {
				k.part.Leader, k.part.Role = true, i%roles
				s := Step{Kind: k.name, Parts: []Part{k.part}, Quiet: time.Second + t/5*time.Duration(i)/time.Duration(n)}
				if !yield(s) {
					return
				}
			}
		}
	}
}

// FailOverKinds is Kinds for runs that measure fail-over.
func FailOverKinds() (names []string) {
	for _, k := range failOvers(0) {
		names = append(names, k.name)
	}
	return names
}
