package neli

import (
	"context"
	"time"
)

// orderedLog is what a lease needs of the outside world: M totally ordered logs,
// appended to and read back in order. Kafka is the first of its kind.
type orderedLog interface {
	// open waits until every log says where it begins and ends, chooses where to
	// read from, and returns M, and an id that no other set of logs has, nor the
	// same one after a new beginning: records bear it, so that a copy of them
	// elsewhere is told from them. The first entries that next returns are jumps
	// to these places.
	open(ctx context.Context) (m int, id string, err error)
	// next returns the next entry, or false after timeout. An error is final.
	next(ctx context.Context, timeout time.Duration) (logEntry, bool, error)
	// append hands over a record without waiting. After a nil error report is
	// called exactly once, never from within append; an error given to it means
	// that the record may or may not be in the log. After a non-nil error the
	// record was not handed over.
	append(p int, value []byte, report func(error)) error
	// watch checks that the log is still the same one, until ctx is done or it is
	// not. An error is final.
	watch(ctx context.Context) error
	// doubt asks watch to check soon.
	doubt()
	// close ends reading and writing; reports of what was on its way are made
	// before it returns.
	close()
}

// logEntry is a record, or a jump: the news that reading begins, or begins again,
// at offset. Whatever was known of that log before may be out of date, and nothing
// is known of a log whose first jump has not come. The records before end were in
// the log already, for nobody knows how long.
type logEntry struct {
	partition int
	offset    int64
	value     []byte
	jump      bool
	end       int64 // of a jump
}

// unused reports of a jump whether nothing has ever been appended to the log: it is
// empty, and begins at offset 0.
func (e logEntry) unused() bool { return e.jump && e.end == 0 }

// nominator says which partitions this process may claim.
type nominator interface {
	// run works until ctx is done, or returns the error that ended it for good.
	// It calls nominate with all partitions that this process is nominated for,
	// each time these change; lost instead means that nothing is known any more:
	// what is held may be kept, nothing new be claimed.
	run(ctx context.Context, nominate func(partitions []int, lost bool)) error
	// join says whether to take part.
	join(bool)
	// close leaves for good, after run or instead of it.
	close()
}
