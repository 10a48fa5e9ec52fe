package oracle

import (
	"fmt"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/store"
	"github.com/goneli/neli/lab/witness"
)

// WriteFaults compares the members' operations on the store with the store's own log: accepted tokens never decrease,
// acknowledged writes are there with the same verdict, every write in the log was requested, and a token belongs to one member.
func WriteFaults(ops []history.Op, log []store.Entry, terms []witness.Term) []string {
	faults := orderFaults(log)
	faults = append(faults, logFaults(ops, log)...)
	return append(faults, ownerFaults(ops, log, terms)...)
}

func orderFaults(log []store.Entry) []string {
	var faults []string
	accepted := map[int]int64{} // by role: the last token
	for _, e := range log {
		last, some := accepted[e.Role]
		switch {
		case e.Accepted && some && e.Token < last:
			faults = append(faults, fmt.Sprintf("role %d: write %d (%s) was accepted with token %d after token %d",
				e.Role, e.Serial, e.Member, e.Token, last))
		case !e.Accepted && (!some || e.Token >= last):
			faults = append(faults, fmt.Sprintf("role %d: write %d (%s) was rejected with token %d after token %d",
				e.Role, e.Serial, e.Member, e.Token, last))
		}
		if e.Accepted {
			accepted[e.Role] = e.Token
		}
	}
	return faults
}

func logFaults(ops []history.Op, log []store.Entry) []string {
	var faults []string
	found := map[int64]store.Entry{} // by value, which is unique
	for _, e := range log {
		if former, twice := found[e.Value]; twice {
			faults = append(faults, fmt.Sprintf("role %d: write of value %d is in the log twice: %d and %d", e.Role, e.Value, former.Serial, e.Serial))
		}
		found[e.Value] = e
	}
	for _, op := range ops {
		if op.Kind != history.Write {
			continue
		}
		e, there := found[op.Value]
		delete(found, op.Value)
		what := fmt.Sprintf("role %d: write of value %d by %s under token %d, %s", op.Role, op.Value, op.Member, op.Token, op.Outcome)
		switch {
		case there && (e.Role != op.Role || e.Token != op.Token || e.Member != op.Member):
			faults = append(faults, fmt.Sprintf("%s: the log has %+v", what, e))
		case op.Outcome == history.Unknown:
		case op.Outcome == history.NotSent && there:
			faults = append(faults, what+": it is in the log")
		case op.Outcome == history.NotSent:
		case !there && op.Outcome == history.Rejected: // it was refused before it came that far
		case !there:
			faults = append(faults, what+": it is lost")
		case e.Accepted != (op.Outcome == history.Accepted):
			faults = append(faults, fmt.Sprintf("%s: the log has accepted=%v", what, e.Accepted))
		}
	}
	for value, e := range found {
		faults = append(faults, fmt.Sprintf("role %d: write of value %d (%s) is in the log, and nobody wrote it", e.Role, value, e.Member))
	}
	return faults
}

// ownerFaults checks that only one member ever wrote or led with a given token.
func ownerFaults(ops []history.Op, log []store.Entry, terms []witness.Term) []string {
	type key struct {
		role  int
		token int64
	}
	var faults []string
	owners := map[key]string{}
	own := func(role int, token int64, member, how string) {
		k := key{role, token}
		if owner, some := owners[k]; some && owner != member {
			faults = append(faults, fmt.Sprintf("role %d: token %d belongs to %s, and %s %s", role, token, owner, member, how))
		} else {
			owners[k] = member
		}
	}
	for _, t := range terms {
		own(t.Role, t.Token, t.Member, "led under it")
	}
	for _, op := range ops {
		if op.Kind == history.Write {
			own(op.Role, op.Token, op.Member, "wrote under it")
		}
	}
	for _, e := range log {
		own(e.Role, e.Token, e.Member, "is in the log with it")
	}
	return faults
}

// Writes counts the writes by their outcome.
type Writes struct {
	Accepted, Rejected, Unknown, NotSent int
	Reads                                int
	Claims                               int // that were accepted
	// Stale is the number of writes that reached the store after one with a greater token. Without the guard they would have
	// overwritten a successor's work.
	Stale int
}

// CountWrites counts the writes of a record.
func CountWrites(ops []history.Op, log []store.Entry) Writes {
	var w Writes
	for _, op := range ops {
		switch {
		case op.Kind == history.Read:
			w.Reads++
		case op.Kind == history.Fence:
			if op.Outcome == history.Accepted {
				w.Claims++
			}
		case op.Outcome == history.Accepted:
			w.Accepted++
		case op.Outcome == history.Rejected:
			w.Rejected++
		case op.Outcome == history.NotSent:
			w.NotSent++
		default:
			w.Unknown++
		}
	}
	for _, e := range log {
		if e.Stale {
			w.Stale++
		}
	}
	return w
}
