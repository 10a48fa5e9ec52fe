package nelihttp

import (
	"strconv"
	"strings"
)

// maxRanges is the largest number of ranges that are written for people.
const maxRanges = 100

// ranges formats ascending roles as ranges, "0-4,9". A list that is too long ends in "…".
func ranges(roles []int) string {
	var b strings.Builder
	for n := 0; len(roles) > 0; n++ {
		if n > 0 {
			b.WriteByte(',')
		}
		if n == maxRanges {
			b.WriteString("…")
			break
		}
		last := 1
		for last < len(roles) && roles[last] == roles[last-1]+1 {
			last++
		}
		b.WriteString(strconv.Itoa(roles[0]))
		if last > 1 {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(roles[last-1]))
		}
		roles = roles[last:]
	}
	return b.String()
}
