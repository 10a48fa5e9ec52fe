package nelihttp

import r "github.com/goneli/neli/internal/ranges"

// maxRanges is the largest number of ranges that are written for people.
const maxRanges = 100

// ranges formats ascending roles as ranges, "0-4,9". A list that is too long ends in "…".
func ranges(roles []int) string { return r.Of(roles, maxRanges) }
