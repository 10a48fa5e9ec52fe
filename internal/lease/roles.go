package lease

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Lists of roles on the wire. With few ranges they are readable, as in "0-4,9". Otherwise they
// are a "~" and base64 of two varints for each range: the gap before it, and its length less one.
// A thousand roles scattered over a hundred thousand take 3 KB.

const fewRanges = 64

// runs calls f for each maximal range of consecutive roles.
func runs(roles []int32, f func(first, last int32)) {
	for i := 0; i < len(roles); {
		k := i + 1
		for k < len(roles) && roles[k] == roles[k-1]+1 {
			k++
		}
		f(roles[i], roles[k-1])
		i = k
	}
}

// packRoles writes an ascending list of roles.
func packRoles(roles []int32) string {
	n := 0
	runs(roles, func(int32, int32) { n++ })
	if n <= fewRanges {
		var b []byte
		runs(roles, func(first, last int32) {
			if len(b) > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(first), 10)
			if last > first {
				b = append(b, '-')
				b = strconv.AppendInt(b, int64(last), 10)
			}
		})
		return string(b)
	}
	b := make([]byte, 0, 3*n)
	next := int32(0)
	runs(roles, func(first, last int32) {
		b = binary.AppendUvarint(b, uint64(first-next))
		b = binary.AppendUvarint(b, uint64(last-first))
		next = last + 1
	})
	return "~" + base64.RawStdEncoding.EncodeToString(b)
}

var errRoles = errors.New("roles: must be ascending ranges of numbers below " + strconv.Itoa(MaxRoles))

// unpackRoles reads the output of packRoles, at most limit roles. Its input is untrusted.
func unpackRoles(s string, limit int) ([]int32, error) {
	if s == "" {
		return nil, nil
	}
	var roles []int32
	next := uint64(0)
	add := func(first, last uint64) bool {
		if first < next || last < first || last >= MaxRoles || len(roles)+int(last-first) >= limit {
			return false
		}
		roles = slices.Grow(roles, int(last-first)+1)
		for j := first; j <= last; j++ {
			roles = append(roles, int32(j))
		}
		next = last + 1
		return true
	}
	if packed, ok := strings.CutPrefix(s, "~"); ok {
		b, err := base64.RawStdEncoding.DecodeString(packed)
		if err != nil || len(b) == 0 {
			return nil, errRoles
		}
		for len(b) > 0 {
			gap, n := binary.Uvarint(b)
			if n <= 0 || gap >= MaxRoles {
				return nil, errRoles
			}
			length, k := binary.Uvarint(b[n:])
			if k <= 0 || length >= MaxRoles || !add(next+gap, next+gap+length) {
				return nil, errRoles
			}
			b = b[n+k:]
		}
		return roles, nil
	}
	for r := range strings.SplitSeq(s, ",") {
		low, high, ranged := strings.Cut(r, "-")
		first, err := strconv.ParseUint(low, 10, 32)
		last := first
		if ranged && err == nil {
			last, err = strconv.ParseUint(high, 10, 32)
		}
		if err != nil || !add(first, last) {
			return nil, errRoles
		}
	}
	return roles, nil
}
