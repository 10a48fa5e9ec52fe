package kafkalog

import (
	"sync"
	"time"
)

// Timeouts are how long brokers may take: the time-outs of clients and of Topic.attempt.
type Timeouts struct {
	Request    time.Duration // a client's, for the answer to a request
	Connection time.Duration // a client's, for a connection with TLS and a login
	First      time.Duration // of a question, until the brokers have answered one
	Question   time.Duration // of a later question, for which the client may have to connect
}

// timeoutsFor returns the timeouts for T and a round trip, which is 0 until one was measured. late
// is how many questions have timed out before the first answer.
//
// A request gets 2/5 of T: a longer T means that brokers are further away, or that there is time.
// It gets at least 2 s, instead of librdkafka's minute: with 2 s a stopped broker was replaced
// after 9–14 s, with a minute after 61 s. It gets at most 6 s, since a cluster has replaced a
// silent broker after 9 s. A connection takes half as long again.
//
// A measured round trip only raises these values, because a near broker may be slow, too. A request
// takes one round trip, or two if a packet is lost; a connection with TLS and a login takes up to
// eight.
//
// Before the first answer, a timeout may mean a wrong address, so the first question has three
// seconds. But the brokers may also be far away. So each late question doubles the time of the next
// one, and the time for connections of clients that are made after it.
func timeoutsFor(t, trip time.Duration, late int) Timeouts {
	request := min(max(2*time.Second, 2*t/5), 6*time.Second)
	connection := request * 3 / 2
	question := 10 * time.Second
	if trip > 0 {
		request = max(request, min(4*trip, 10*time.Second))
		connection = max(connection, min(10*trip, 20*time.Second))
		question = max(question, min(20*trip, 20*time.Second))
	} else {
		connection = max(connection, min(connection<<late, 15*time.Second))
	}
	return Timeouts{Request: request, Connection: connection, First: min(3*time.Second<<late, question), Question: question}
}

// tripWindow is how long a round trip counts at most, if others follow; at least half of that.
const tripWindow = time.Minute

// mostLate is how many late questions count.
const mostLate = 3

// Pace measures how far away the brokers are. The round trip is the shortest one of the last
// tripWindow, from a record handed to a client until it was acknowledged, or from a question until
// its answer. The shortest one is not affected by a broker's crash, which delays all writes for
// seconds. The methods may be called concurrently; those of a nil Pace measure nothing.
type Pace struct {
	mu       sync.Mutex
	began    time.Time     // of the current half of the window
	now      time.Duration // the shortest round trip of this half; 0: none
	before   time.Duration // of the former half
	late     int           // questions that timed out before the first answer
	answered bool
}

// Note adds a measured round trip that ended at a time.
func (p *Pace) Note(trip time.Duration, at time.Time) {
	if p == nil || trip <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = true
	p.turn(at)
	if p.now == 0 || trip < p.now {
		p.now = trip
	}
}

// turn begins another half of the window when the current one is over. If that had no round trips,
// those of the half before are kept.
func (p *Pace) turn(at time.Time) {
	if at.Sub(p.began) < tripWindow/2 {
		return
	}
	p.began = at
	if p.now != 0 {
		p.before, p.now = p.now, 0
	}
}

// noteLate notes that a question has timed out.
func (p *Pace) noteLate() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.answered {
		p.late = min(p.late+1, mostLate)
	}
}

// Timeouts returns the time-outs of this moment.
func (p *Pace) Timeouts(t time.Duration) Timeouts {
	if p == nil {
		return timeoutsFor(t, 0, 0)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	trip := p.now
	if trip == 0 || p.before != 0 && p.before < trip {
		trip = p.before
	}
	return timeoutsFor(t, trip, p.late)
}
