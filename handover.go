package neli

import "time"

// handover is the orderly end of one term: lead on until a successor is ready, let
// the application finish its work, release. It is pure: advance says what to do,
// the arbiter does it.
type handover struct {
	why      Reason
	since    instant
	asked    bool    // the application was asked to finish, by deadline
	deadline instant // lease kept until then at the most
	done     bool    // the application has finished

	to     string // Open: the process that is to lead next, if any is known
	named  bool   // whether that has been thought of
	called bool   // whether it was asked to say that it is there
	call   int64  // where the log has that; 0: it was not read back yet
	answer bool   // it has said so
	pinned bool   // it is to keep the partition
}

// deliberate reports whether the partition is handed over though this process could
// keep it: that is called off only if there is nobody to take it.
func (h *handover) deliberate() bool {
	return h.why == ReasonTransferred || h.why == ReasonRebalanced
}

// scene is what a handover is decided by.
type scene struct {
	wanted  bool // the partition is wanted again, or still
	told    bool // the application knows that it leads
	ready   bool // a successor is ready, or none is to be expected
	refused bool // who is to lead next is gone, or would not
	idle    bool // nobody drives this Neli any more: wait for no successor
	drain   time.Duration
	wait    time.Duration // how long to wait for a successor
}

type verdict int

const (
	verdictStay    verdict = iota // go on leading
	verdictAsk                    // ask the application to finish, by deadline
	verdictRelease                // forget the token, then send Release
	verdictCancel                 // go on leading as if nothing had been: nobody was asked
	verdictOverdue                // as verdictRelease, the application not having finished
)

// advance moves the handover on at time now.
func (h *handover) advance(now instant, s scene) verdict {
	over := now.ageAtMost(h.since) >= s.wait
	switch {
	case !h.asked && s.wanted && (!h.deliberate() || s.refused || over && !s.ready):
		return verdictCancel
	case !s.told:
		return verdictRelease
	case !h.asked && (s.ready || s.refused || s.idle || over):
		h.asked, h.deadline = true, now.add(s.drain)
		return verdictAsk
	case h.asked && h.done:
		return verdictRelease
	case h.asked && now.mono >= h.deadline.mono:
		return verdictOverdue
	}
	return verdictStay
}

// wake is the monotonic time at which advance will have something to say.
func (h *handover) wake(wait time.Duration) time.Duration {
	if h.asked {
		return h.deadline.mono
	}
	return h.since.mono + wait
}
