// Package ranges writes lists of roles for people.
package ranges

import "strconv"

// Of writes ascending roles as ranges, "0-4,9". A list of more than max ranges ends in "…"; 0 means no limit.
func Of(roles []int, max int) string {
	var b []byte
	for n := 0; len(roles) > 0; n++ {
		if n > 0 {
			b = append(b, ',')
		}
		if n == max && max > 0 {
			b = append(b, "…"...)
			break
		}
		last := 1
		for last < len(roles) && roles[last] == roles[last-1]+1 {
			last++
		}
		b = strconv.AppendInt(b, int64(roles[0]), 10)
		if last > 1 {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(roles[last-1]), 10)
		}
		roles = roles[last:]
	}
	return string(b)
}
