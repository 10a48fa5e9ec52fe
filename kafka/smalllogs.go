package kafka

import (
	"context"
	"log/slog"
	"time"
)

// SmallLogs is what a Provider has in addition if it gives logs of its own in place of
// Kafka. New uses these then: no topic, no Kafka client. Exclusive mode and Open
// nomination only.
//
// A role is led by whoever holds it on more than half of the logs. Fencing tokens are
// ballots then, not offsets: they strictly increase over the terms of a role as offsets
// do, whichever processes and logs have failed, as long as the wall clocks of all members
// are within half of HeartbeatTimeout of each other. (That matters when a log has lost
// its memory; exclusivity never rests on wall clocks.) What others lead is told without a
// token: Holder.Token is 0 unless the holder is this process.
type SmallLogs interface {
	Provider
	// SmallLogs opens the logs. It returns without waiting for any of them: that is what
	// Next is for. ctx bounds the call only. Its errors are New's: faults of the
	// configuration, all at once.
	SmallLogs(ctx context.Context, s LogSettings) (LogSet, error)
}

// LogSettings is what a set of logs is told of the Neli that uses it. Group, T and Rho are
// the same for all members of a group, and what hosts the logs refuses a member that has
// others before it reads or writes anything: a process that knows nothing of a log waits no
// longer than its own T says for whom it has not heard.
type LogSettings struct {
	Group  string        // Config.LeaderGroupID
	Name   string        // Config.Name, for people
	T      time.Duration // Config.HeartbeatTimeout
	Rho    float64       // Config.MaxClockDrift
	Logger *slog.Logger  // never nil
}

// LogSet is N small logs that this process reads and appends to. N is odd, at most 7, and
// pinned for the whole group, as is which log has which number.
//
// A log may lose its memory at any time and come back empty. It has another id then, that
// no log ever had: random, of at least 128 bits, or counted by who does not forget. What the rules rest on, and nothing here can check, is that
// two incarnations of one log never serve at the same time.
//
// Next is used by one goroutine, which has left it when Close is called. Append may be
// called concurrently, and after Close, when it returns an error.
type LogSet interface {
	// Logs is N.
	Logs() int
	// Next returns the next entry of any log, or false after timeout or when ctx is done.
	// An error is final: the Neli fails with it.
	Next(ctx context.Context, timeout time.Duration) (LogEntry, bool, error)
	// Append hands over a record for the incarnation id of a log, and returns at once. If
	// the log has another id by the time that the record reaches it, it must not take it
	// as one of its own. A record that cannot be delivered within a quarter of T is
	// dropped. After a nil error report is called exactly once, never from within Append:
	// with an error if the record may not be in the log. After a non-nil error it is not
	// called, and the record was not handed over. ballot is the record's, for logs that
	// tell the largest one they were given (LogEntry.Top).
	Append(log int, id string, value []byte, ballot int64, report func(error)) error
	// Close ends reading and writing. When it returns, every report has been made and no
	// goroutine of the set is left.
	Close() error
}

// LogEntryKind tells what a LogEntry is.
type LogEntryKind int

const (
	// LogReset: reading begins, or begins anew, at Offset. The first entry of each log is
	// one, and another one follows when the log's id changes, when records were missed, and
	// whenever reading may have stopped.
	LogReset LogEntryKind = iota
	// LogRecord: the record at Offset. Offsets of one incarnation go up by one, and a record that
	// plays no part has its offset, too. A record that is not at the next offset shows that those
	// between were lost: this process gives up what it holds in that log, and begins to read it
	// anew behind that record, as after a LogReset.
	LogRecord
	// LogAlive: the log was heard, and has no record to tell of. Each log says so every
	// T/8 to 3T/8 at least; one that was not heard for T/2 is taken for unreachable and
	// nothing is claimed there.
	LogAlive
)

// LogEntry is what Next returns.
type LogEntry struct {
	Log    int
	Kind   LogEntryKind
	ID     string // of the incarnation that says so
	Offset int64  // LogReset, LogRecord
	Value  []byte // LogRecord; owned by the receiver
	First  int64  // LogReset: the first record that the log still has
	End    int64  // LogReset, LogAlive: the offset that the next record will have
	// Top is the largest ballot that this incarnation was given, 0 if it does not say.
	// LogReset only. With it, tokens need no clocks as long as no log forgets.
	Top int64
}
