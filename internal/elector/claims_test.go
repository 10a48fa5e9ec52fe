package elector

import (
	"time"

	"github.com/goneli/neli/internal/lease"
)

func session(process string) lease.Session { return lease.Session{Process: process, N: 1} }

func holder(process string, heard, free time.Duration) lease.HolderState {
	return lease.HolderState{Session: session(process), Heard: at(heard), FreeAt: at(free).Raw}
}
