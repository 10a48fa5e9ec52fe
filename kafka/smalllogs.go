package kafka

import (
	"context"
	"log/slog"
	"time"
)

// SmallLogs is implemented by a Provider that has logs of its own in place of Kafka. New then uses
// these: no topic, no Kafka client. Exclusive mode and Open nomination only.
//
// A role's leader holds it on more than half of the logs. Fencing tokens are ballots, not offsets.
// They strictly increase over the terms of a role, whichever processes and logs fail, as long as
// the wall clocks of all members agree within half of HeartbeatTimeout. (That matters when a log
// has lost its memory; exclusivity never depends on wall clocks.) Other processes do not learn a
// leader's token: Holder.Token is 0 unless the holder is this process.
type SmallLogs interface {
	Provider
	// SmallLogs opens the logs, without waiting for any of them; Next does that. ctx limits this
	// call only. New returns its error, which has all faults of the configuration.
	SmallLogs(ctx context.Context, s LogSettings) (LogSet, error)
}

// LogSettings describe the Neli that uses the logs. Group, HeartbeatTimeout and MaxClockDrift are the
// same for all members of a group. The host of a log refuses a member with other values before the
// member reads or writes anything: a process that knows nothing of a log waits only as long as its
// own HeartbeatTimeout for holders that it has not heard.
type LogSettings struct {
	Group            string        // Config.LeaderGroupID
	Name             string        // Config.Name, for people
	HeartbeatTimeout time.Duration // T
	MaxClockDrift    float64       // ρ
	Logger           *slog.Logger  // never nil
}

// LogSet is N small logs that this process reads and appends to. N is odd and at most 7. The logs are
// the same for the whole group, unless the set implements Joint.
//
// A log may lose its memory at any time and come back empty. It then has another id that no log
// ever had: random, of at least 128 bits, or counted by something that does not forget. The rules
// depend on this: two incarnations of one log never serve at the same time. The library cannot
// check that.
//
// One goroutine uses Next, and has returned from it when Close is called. Append may be called
// concurrently; after Close it returns an error.
type LogSet interface {
	// Logs is N.
	Logs() int
	// Next returns the next entry of any log, or false after timeout or when ctx is done.
	// An error is final: the Neli fails with it.
	Next(ctx context.Context, timeout time.Duration) (LogEntry, bool, error)
	// Append hands over a record for the incarnation id of a log, and returns at once. If the
	// log has another id when the record arrives, it must not accept the record. A record that
	// cannot be delivered within a quarter of HeartbeatTimeout is dropped. If Append returns nil, report is
	// called exactly once, never from within Append, with an error if the record may not be in
	// the log. If Append returns an error, report is not called and the record was not handed
	// over. ballot is the record's, for logs that report the largest ballot they were given
	// (LogEntry.Top).
	Append(log int, id string, value []byte, ballot int64, report func(error)) error
	// Close ends reading and writing. When it returns, all reports were made and no goroutine of the set is left.
	Close() error
}

// Checker is implemented by a SmallLogs that can check its configuration without the network.
// RunSentinel always calls Check, New only before it returns an error. Both return its faults together
// with those of neli.Config.
type Checker interface {
	SmallLogs
	// Check returns the faults of the configuration, joined by errors.Join, or nil.
	Check() error
}

// Identified is implemented by a LogSet that can tell its logs from those of other sets. A sentinel
// refuses a member whose logs have another identity than the sentinel's. If either has none, it accepts
// the member; if their logs differ, it then releases nothing, and a crash costs T.
type Identified interface {
	LogSet
	// Identity returns a text of 1 to 256 bytes of UTF-8 that is the same in all processes that use
	// these logs. It waits until the text is known, and returns "" if ctx ends first. It may be
	// called concurrently with the other methods, and after Close.
	Identity(ctx context.Context) string
}

// Joint is implemented by a LogSet whose list of logs is being changed. A process then leads a role
// only if it holds it on more than half of the old and on more than half of the new logs. So it never
// leads beside a process that uses one of these lists alone. Two processes that use one list each may
// both lead: a Provider must keep them apart. N, the number of logs in both lists, may be even.
type Joint interface {
	LogSet
	// Lists returns the numbers of the logs in the old and in the new list, or nil if there is one
	// list. It does not change.
	Lists() [][]int
}

// LogEntryKind is the kind of a LogEntry.
type LogEntryKind int

const (
	// LogReset: reading begins, or begins again, at Offset. It is the first entry of each log.
	// Another one follows when the log's id changes, when records were missed, and whenever
	// reading may have stopped.
	LogReset LogEntryKind = iota
	// LogRecord: the record at Offset. Offsets of one incarnation increase by one, including
	// records without effect. A record that is not at the next offset shows that those between
	// were lost: this process gives up what it holds in that log, and begins to read again after
	// that record, as after a LogReset.
	LogRecord
	// LogAlive: the log can be reached, and has no new record. Each log sends it at intervals of
	// T/8 to 3T/8. A log that was not heard for T/2 counts as unreachable, and nothing is
	// claimed there.
	LogAlive
)

// LogEntry is what Next returns.
type LogEntry struct {
	Log    int
	Kind   LogEntryKind
	ID     string // of the incarnation
	Offset int64  // LogReset, LogRecord
	Value  []byte // LogRecord; owned by the receiver
	First  int64  // LogReset: the offset of the first record that the log still has
	End    int64  // LogReset, LogAlive: the offset that the next record will have
	// Top is the largest ballot that this incarnation was given, 0 if the log does not report
	// it. LogReset only. With it, tokens do not depend on clocks as long as no log forgets.
	Top int64
}
