package vacancy

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

var at = clock.HourAnd // an instant after the beginning of a test

func session(process string) lease.Session { return lease.Session{Process: process, N: 1} }

func holder(process string, heard, free time.Duration) lease.HolderState {
	return lease.HolderState{Session: session(process), Heard: at(heard), FreeAt: at(free).Raw}
}
