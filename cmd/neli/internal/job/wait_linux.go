package job

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/goneli/neli"
)

// LeastWait returns the shortest Wait that is of use with a lease of t. When the leader's host has crashed, a
// process that has just started may claim only once a lease is over, and up to 3/4 t later if another member
// goes first. If every run gave up earlier, and the next one began to wait anew, nobody would lead again.
func LeastWait(t time.Duration) time.Duration { return 2 * t }

// unelected says what this process has waited for, and what its user can do about it.
func unelected(n *neli.Neli) string {
	status := neli.StatusUnknown
	for _, s := range n.Standings() {
		if slices.Contains(slices.Collect(s.Roles()), 0) {
			status = s.Status
		}
	}
	h, _ := n.Holder(0)
	return unelectedBecause(n.Stats().Reached, status, h, n.Config().HeartbeatTimeout)
}

func unelectedBecause(reached bool, s neli.Status, h neli.Holder, t time.Duration) string {
	switch {
	case !reached:
		return "no broker was reached; neli check says why"
	case s == neli.StatusHeld:
		return fmt.Sprintf("%s leads and was heard %v ago; it leads until its command ends or neli step-down moves it, and neli run without --wait waits for that",
			strconv.Quote(h.Name), h.Age.Round(time.Millisecond))
	case s == neli.StatusVacant:
		return "nobody leads, and no claim of this process came back from the topic; neli check says whether it can write, and how large --timeout must be"
	}
	return fmt.Sprintf("the topic does not show yet who leads; a former leader may have had a longer --timeout than this process (%v); run it with a longer --wait, 70s at most", t)
}
