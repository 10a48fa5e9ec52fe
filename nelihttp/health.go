package nelihttp

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/inside"
	r "github.com/goneli/neli/internal/ranges"
)

// silenceLimit is the longest time for which a healthy member may read nothing. It reads an announcement,
// its own or another member's, at least every five seconds. Three times HeartbeatTimeout are allowed
// if that is longer. There is no limit for an observer: it announces nothing, so it reads nothing while
// the group has no member. Nor is there one in non-exclusive mode: a member reads only the partitions
// that the group has assigned to it, so a follower without any reads nothing.
const silenceLimit = 15 * time.Second

// health is the answer of /healthz.
type health struct {
	Healthy bool   `json:"healthy"`
	Reason  string `json:"reason,omitempty"`
	about
}

// healthz reports whether this process is able to take part: whether it is live and, if it is a member
// in exclusive mode, reads the log. A follower is healthy.
func (h *handler) healthz(w http.ResponseWriter, _ *http.Request) {
	a := health{about: h.about(), Reason: h.unwell()}
	a.Healthy = a.Reason == ""
	status := http.StatusOK
	if !a.Healthy {
		status = http.StatusServiceUnavailable
	}
	answer(w, status, a)
}

func (h *handler) unwell() string {
	if s := h.src.State(); s != neli.StateLive {
		return "this process is " + s.String()
	}
	cfg := h.src.Config()
	if cfg.Observer || cfg.Mode != neli.Exclusive {
		return ""
	}
	limit := max(3*cfg.HeartbeatTimeout, silenceLimit)
	if age := h.src.Stats().RecordAge; age >= limit {
		return fmt.Sprintf("nothing was read from the leader topic for %v; the limit is %v", age.Round(time.Millisecond), limit)
	}
	return ""
}

// source is what the routes need of a member.
type source interface {
	Config() neli.Config
	State() neli.State
	Partitions() int

	IsLeader() bool
	IsLeaderOf(role int) bool
	Token(role int) (token int64, ok bool)
	Led() iter.Seq[int]

	Holder(role int) (neli.Holder, bool)
	Standings() []neli.Standing
	Watch(context.Context) iter.Seq[neli.Standing]
	Members() []neli.Member
	Stats() neli.Stats

	StepDown(context.Context) error
	Transfer(ctx context.Context, role int, to string) error
}

// member is a Neli with the numbers of its partitions and roles, which it does not show itself.
type member struct{ *neli.Neli }

func (m member) Partitions() int { return inside.Partitions(m.Neli) }
func (m member) Roles() int      { return inside.Roles(m.Neli) }

var (
	_ source  = member{}
	_ leaders = member{}
)

// maxRanges is the largest number of ranges that are written for people.
const maxRanges = 100

// ranges formats ascending roles as ranges, "0-4,9". A list that is too long ends in "…".
func ranges(roles []int) string { return r.Of(roles, maxRanges) }
