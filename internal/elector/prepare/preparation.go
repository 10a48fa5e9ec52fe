package prepare

import (
	"cmp"
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/offer"
	"github.com/goneli/neli/internal/lease"
)

// Why is why a preparation is over.
type Why string

// The reasons. A process that leads the role goes on with what it has prepared.
const (
	Led         Why = "led"         // this process leads the role
	Failed      Why = "failed"      // Prepare returned an error
	Late        Why = "late"        // Prepare did not return in time
	CalledOff   Why = "called off"  // the holder keeps the role, or gives it to another process
	Elsewhere   Why = "elsewhere"   // another process leads it
	Unconfirmed Why = "unconfirmed" // no offer has named it for 2T
	Unwilling   Why = "unwilling"   // this process closes, has stepped down or is unhealthy
	Unwanted    Why = "unwanted"    // the role is R or greater, or its log has begun anew
	Relieved    Why = "relieved"    // this process stands by for it no more
)

type stage int8

const (
	queued stage = iota
	running
	ready
	failed
)

type preparation struct {
	offer.Place
	from    string // the holder whose newest offer names it
	urgent  bool
	stage   stage
	call    uint64     // the number of its call of Prepare; 0: none yet, or its context has ended
	late    clock.Mono // when it fails if it still runs
	expires clock.Mono // when it ends, unless an offer names it before
	standby bool       // this process stands by for it, whether it is offered or not
	again   clock.Mono // when a standby that failed is tried again
	listed  bool       // it is in queue or resting
}

// rank puts urgent preparations first.
func (w *preparation) rank() int {
	if w.urgent {
		return 0
	}
	return 1
}

// holder is what is known of the offers of a process.
type holder struct {
	newest uint64     // the highest number of an offer read
	log    int        // the log of that offer; −1: that log has begun anew
	offset int64      // its offset there
	heard  clock.Mono // when it was read
	owes   bool       // there is a state to be said
	said   clock.Mono // when a state was last said
}

// Begin is a call of Prepare to begin.
type Begin struct {
	offer.Place
	Call uint64
	Role int // set in a Do only: as the application numbers the role
}

// End is a call of Prepare whose context is to end, whether it has returned or not.
type End struct {
	Begin
	Why Why
}

// Say is a state to be said, in the Pong to the Ping at an offset of a log.
type Say struct {
	To     offer.From
	Log    int
	Offset int64
	State  lease.Prepared
}

// Do is what is to be done. What ends comes first.
type Do struct {
	End   []End
	Begin []Begin
	Say   []Say
}

func every(*preparation) bool { return true }

// sorted returns some preparations, by their places.
func sorted(of map[offer.Place]*preparation, which func(*preparation) bool) (out []*preparation) {
	for _, w := range of {
		if which(w) {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b *preparation) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Local, b.Local))
	})
	return out
}
