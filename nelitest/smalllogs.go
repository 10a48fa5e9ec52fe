package nelitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli/kafka"
)

// SmallLogs is N small logs in memory ([kafka.SmallLogs]), for elections without a broker. On command,
// logs stop, come back and lose their memory, and members are cut off from some logs, in one direction or
// both, are slow, or die. One fault is excluded: a log never comes back with an old state of its memory
// under an id that it had before. Like Broker, SmallLogs uses only the runtime's clock and has no goroutine
// that must be stopped. Its methods are safe for concurrent use.
type SmallLogs struct {
	trip time.Duration

	mu   sync.Mutex
	logs []*smallLog
	sets map[*smallSet]struct{}
	cut  map[cutFrom]Link
	slow map[string]slowness          // by member
	of   map[string]kafka.LogSettings // by group: of its first member
}

// slowness is how much longer a member's appends and reads take than the round trip.
type slowness struct{ appends, reads time.Duration }

// cutFrom is a pair of a member and a log.
type cutFrom struct {
	member string
	log    int
}

// smallLog is one log. It keeps its records until Forget.
type smallLog struct {
	births  int
	records [][]byte
	top     int64
	down    bool
}

// NewSmallLogs returns logs that are up and empty. A record reaches all members, including its sender, one
// round trip after it was appended.
func NewSmallLogs(logs int, roundTrip time.Duration) *SmallLogs {
	n := &SmallLogs{trip: roundTrip, sets: map[*smallSet]struct{}{}, cut: map[cutFrom]Link{}, slow: map[string]slowness{}, of: map[string]kafka.LogSettings{}}
	for range logs {
		n.logs = append(n.logs, &smallLog{births: 1})
	}
	return n
}

// Provider returns the provider by which the named member opens the logs. Faults name the member that they affect.
func (n *SmallLogs) Provider(member string) kafka.Provider { return &smallProvider{n, member} }

// Stop stops a log. Start brings it back with all its records.
func (n *SmallLogs) Stop(log int)  { n.change(log, func(l *smallLog) { l.down = true }) }
func (n *SmallLogs) Start(log int) { n.change(log, func(l *smallLog) { l.down = false }) }

// Forget restarts a log. It comes back at once, empty and with another id.
func (n *SmallLogs) Forget(log int) {
	n.change(log, func(l *smallLog) { *l = smallLog{births: l.births + 1} })
}

// CutOff cuts links between a member and a log: LinkAppends (the member's appends do not arrive there),
// LinkReads (the member reads nothing from there), or LinkAll. The other links have no meaning here. What is
// in flight still arrives. Links that are cut already stay cut.
func (n *SmallLogs) CutOff(member string, log int, links Link) {
	n.change(log, func(*smallLog) { n.cut[cutFrom{member, log}] |= links })
}

// Restore repairs all links between a member and a log.
func (n *SmallLogs) Restore(member string, log int) {
	n.change(log, func(*smallLog) { delete(n.cut, cutFrom{member, log}) })
}

// Slow delays a member's appends by one duration, and what it reads by another. Records that are in flight
// already keep their time. Later appends may overtake them; what a member reads from one log stays in order.
// A negative duration is none.
func (n *SmallLogs) Slow(member string, appends, reads time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slow[member] = slowness{max(appends, 0), max(reads, 0)}
}

// Lose silently drops the records of a log that are on their way to a member, which no Provider should do.
// At the next record the member notices the gap, and begins again in that log.
func (n *SmallLogs) Lose(member string, log int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.sets {
		if s.member == member {
			s.ready = slices.DeleteFunc(s.ready, func(a arrival) bool { return a.e.Log == log && a.e.Kind == kafka.LogRecord })
		}
	}
}

// Kill ends a member's access to the logs, as SIGKILL would: it reads nothing more, and its appends no
// longer arrive, except those in flight. The name may be used again.
func (n *SmallLogs) Kill(member string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.sets {
		if s.member == member {
			s.killed = true
			s.ready = nil
		}
	}
}

// Appended returns the number of records appended to a log since it last lost its memory.
func (n *SmallLogs) Appended(log int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.logs[log].records)
}

// change changes a log, and makes its readers notice.
func (n *SmallLogs) change(log int, f func(*smallLog)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(n.logs[log])
	for s := range n.sets {
		s.notice(log)
	}
}

func (n *SmallLogs) id(log int) string { return fmt.Sprintf("small-%d-%d", log, n.logs[log].births) }

type smallProvider struct {
	logs   *SmallLogs
	member string
}

// SmallLogs implements [kafka.SmallLogs]. It refuses a member whose HeartbeatTimeout or MaxClockDrift is not that of
// its group's first member.
func (p *smallProvider) SmallLogs(_ context.Context, s kafka.LogSettings) (kafka.LogSet, error) {
	set := &smallSet{net: p.logs, member: p.member, every: s.HeartbeatTimeout / 4, wake: make(chan struct{}, 1), owed: map[int]func(error){}, at: make([]reading, len(p.logs.logs))}
	p.logs.mu.Lock()
	defer p.logs.mu.Unlock()
	if first, known := p.logs.of[s.Group]; !known {
		p.logs.of[s.Group] = s
	} else if s.HeartbeatTimeout != first.HeartbeatTimeout || s.MaxClockDrift != first.MaxClockDrift {
		return nil, fmt.Errorf("nelitest: member %s has HeartbeatTimeout %v and MaxClockDrift %v, but group %s has %v and %v",
			p.member, s.HeartbeatTimeout, s.MaxClockDrift, s.Group, first.HeartbeatTimeout, first.MaxClockDrift)
	}
	p.logs.sets[set] = struct{}{}
	for log := range set.at {
		set.notice(log)
	}
	return set, nil
}

var errNoKafka = errors.New("nelitest: this provider has only small logs")

// Producer implements [kafka.Provider]: there is none.
func (p *smallProvider) Producer(map[string]string, *slog.Logger) (kafka.Producer, error) {
	return nil, errNoKafka
}

// LogReader implements [kafka.Provider]: there is none.
func (p *smallProvider) LogReader(map[string]string, *slog.Logger) (kafka.LogReader, error) {
	return nil, errNoKafka
}

// GroupConsumer implements [kafka.Provider]: there is none.
func (p *smallProvider) GroupConsumer(map[string]string, *slog.Logger) (kafka.GroupConsumer, error) {
	return nil, errNoKafka
}

// Admin implements [kafka.Provider]: there is none.
func (p *smallProvider) Admin(kafka.Producer) (kafka.Admin, error) { return nil, errNoKafka }

// smallSet is one process's access to the logs. The lock of SmallLogs guards it.
type smallSet struct {
	net    *SmallLogs
	member string
	every  time.Duration // a log that can be reached sends a sign of life at least this often
	wake   chan struct{} // Next looks again
	at     []reading
	ready  []arrival
	closed bool
	killed bool

	owed    map[int]func(error) // reports that are still to be made
	reports int
	making  sync.WaitGroup // reports that are being made
}

// reading is a process's position in a log.
type reading struct {
	id    string // of the incarnation; "": none is known yet
	next  int    // the next record to be sent to it
	alive time.Time
}

// arrival is an entry that can be read from a time on.
type arrival struct {
	at time.Time
	e  kafka.LogEntry
}

// reaches reports whether a log is up and these links to it are not cut.
func (s *smallSet) reaches(log int, links Link) bool {
	return !s.net.logs[log].down && !s.killed && s.net.cut[cutFrom{s.member, log}]&links == 0
}

// notice sends a process the records of a log that it has not been sent yet, if the log reaches it.
func (s *smallSet) notice(log int) {
	if s.closed || !s.reaches(log, LinkReads) {
		return
	}
	l, at, id := s.net.logs[log], &s.at[log], s.net.id(log)
	arrives := time.Now().Add(s.net.trip + s.net.slow[s.member].reads)
	if arrives.Before(at.alive) {
		arrives = at.alive // behind what is in flight from this log
	}
	if at.id != id {
		*at = reading{id: id}
		s.send(arrival{arrives, kafka.LogEntry{Log: log, Kind: kafka.LogReset, ID: id, End: int64(len(l.records)), Top: l.top}})
	}
	for ; at.next < len(l.records); at.next++ {
		s.send(arrival{arrives, kafka.LogEntry{Log: log, Kind: kafka.LogRecord, ID: id, Offset: int64(at.next), Value: bytes.Clone(l.records[at.next])}})
	}
	at.alive = arrives
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// send queues an entry behind those that arrive no later.
func (s *smallSet) send(a arrival) {
	i := len(s.ready)
	for i > 0 && s.ready[i-1].at.After(a.at) {
		i--
	}
	s.ready = slices.Insert(s.ready, i, a)
}

// Logs implements [kafka.LogSet].
func (s *smallSet) Logs() int { return len(s.at) }

// Next implements [kafka.LogSet].
func (s *smallSet) Next(ctx context.Context, timeout time.Duration) (kafka.LogEntry, bool, error) {
	deadline := time.Now().Add(timeout)
	for {
		e, ok, wait := s.next(deadline)
		if ok || wait <= 0 {
			return e, ok, nil
		}
		select {
		case <-time.After(wait):
		case <-s.wake:
		case <-ctx.Done():
			return kafka.LogEntry{}, false, nil
		}
	}
}

// next returns an entry that has arrived, or how long to wait for one.
func (s *smallSet) next(deadline time.Time) (e kafka.LogEntry, ok bool, wait time.Duration) {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	now := time.Now()
	wait = deadline.Sub(now)
	if len(s.ready) > 0 {
		if first := s.ready[0]; !now.Before(first.at) {
			s.ready = s.ready[1:]
			return first.e, true, 0
		} else {
			wait = min(wait, first.at.Sub(now))
		}
	}
	for log := range s.at {
		at := &s.at[log]
		if at.id == "" || at.id != s.net.id(log) || !s.reaches(log, LinkReads) {
			continue
		}
		if due := at.alive.Add(s.every); now.Before(due) {
			wait = min(wait, due.Sub(now))
		} else {
			at.alive = now
			return kafka.LogEntry{Log: log, Kind: kafka.LogAlive, ID: at.id, End: int64(len(s.net.logs[log].records))}, true, 0
		}
	}
	return kafka.LogEntry{}, false, wait
}

var (
	errOut     = errors.New("nelitest: the log cannot be reached")
	errAnother = errors.New("nelitest: the log has another id")
	errShut    = errors.New("nelitest: the logs are closed")
)

// Append implements [kafka.LogSet].
func (s *smallSet) Append(log int, id string, value []byte, ballot int64, report func(error)) error {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if s.closed {
		return errShut
	}
	value = bytes.Clone(value)
	s.reports++
	number := s.reports
	s.owed[number] = report
	if late := s.net.slow[s.member].appends; late > 0 && s.reaches(log, LinkAppends) {
		time.AfterFunc(late, func() {
			s.net.mu.Lock()
			defer s.net.mu.Unlock()
			s.arrive(log, id, value, ballot, number)
		})
		return nil
	}
	if !s.reaches(log, LinkAppends) {
		s.later(s.every, number, errOut)
		return nil
	}
	s.arrive(log, id, value, ballot, number)
	return nil
}

// arrive puts a record into its log, even if its sender is gone by then.
func (s *smallSet) arrive(log int, id string, value []byte, ballot int64, number int) {
	l, err := s.net.logs[log], error(nil)
	switch {
	case l.down:
		err = errOut
	case id != s.net.id(log):
		err = errAnother
	default:
		l.records, l.top = append(l.records, value), max(l.top, ballot)
		for set := range s.net.sets {
			set.notice(log)
		}
	}
	if s.reaches(log, LinkReads) {
		s.later(s.net.trip, number, err)
		return
	}
	s.later(s.every, number, errOut) // the sender cannot know the outcome
}

// later makes a report after d, unless Close has made it.
func (s *smallSet) later(d time.Duration, number int, err error) {
	time.AfterFunc(d, func() {
		s.net.mu.Lock()
		report, owed := s.owed[number]
		delete(s.owed, number)
		if owed {
			s.making.Add(1)
			defer s.making.Done()
		}
		s.net.mu.Unlock()
		if owed {
			report(err)
		}
	})
}

// Close implements [kafka.LogSet].
func (s *smallSet) Close() error {
	s.net.mu.Lock()
	s.closed = true
	delete(s.net.sets, s)
	owed := s.owed
	s.owed = map[int]func(error){}
	s.net.mu.Unlock()
	for _, report := range owed {
		report(errShut)
	}
	s.making.Wait()
	return nil
}
