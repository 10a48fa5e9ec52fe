package nominate

import "github.com/goneli/neli/internal/clock"

var at = clock.HourAnd // an instant after the beginning of a test
