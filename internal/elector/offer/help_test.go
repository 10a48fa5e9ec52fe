package offer

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

const (
	testT    = 5 * time.Second
	testWait = time.Second
	testFor  = 10 * time.Second
)

var at = clock.HourAnd // an instant after the beginning of a test

func prepares(most int) lease.Prepares { return lease.Prepares{Most: most, For: testFor} }
