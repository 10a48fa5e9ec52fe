package sim

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A second decoder of the wire form, as far as the fold needs it. It takes anything wrong for no
// record at all. The library's own tests check that the library refuses the same records.

// record is a record of this group and log.
type record struct {
	Version int            `json:"neli"`
	Group   string         `json:"group"`
	Log     string         `json:"log"`
	Kind    string         `json:"kind"`
	Process string         `json:"process"`
	Session uint64         `json:"session"`
	Name    string         `json:"name"`
	Read    int64          `json:"read"`
	Seq     uint64         `json:"seq"`
	T       time.Duration  `json:"t"`
	Longest *time.Duration `json:"longest"`
	Fresh   bool           `json:"fresh"`
	Packed  string         `json:"roles"`
	To      string         `json:"to"`

	Request json.RawMessage `json:"request"`

	Ended []struct {
		Token int64  `json:"token"`
		Roles string `json:"roles"`
	} `json:"ended"`

	roles []int32
	ended []grant
}

// grant is a list of roles that are given back, with their token.
type grant struct {
	token int64
	roles []int32
}

func (r *record) id() session { return session{r.Process, r.Session} }

// decode reads a record. newer reports whether it is this group's and of a newer version.
func decode(value []byte, group, log string) (r *record, newer bool) {
	r = &record{}
	if err := json.Unmarshal(value, r); r.Group != group || r.Version > 1 {
		return nil, r.Group == group && r.Version > 1
	} else if err != nil || r.Version != 1 || r.Log != log {
		return nil, false
	}
	r.roles = unpack(r.Packed)
	for _, e := range r.Ended {
		r.ended = append(r.ended, grant{e.Token, unpack(e.Roles)})
	}
	return r, false
}

// unpack reads a list of roles.
func unpack(s string) (roles []int32) {
	add := func(first, last uint64) {
		for role := first; role <= last; role++ {
			roles = append(roles, int32(role))
		}
	}
	packed, ok := strings.CutPrefix(s, "~")
	if !ok {
		for part := range strings.SplitSeq(s, ",") {
			var first, last uint64
			if n, _ := fmt.Sscanf(part, "%d-%d", &first, &last); n == 1 {
				last = first
			} else if n == 0 {
				continue
			}
			add(first, last)
		}
		return roles
	}
	b, err := base64.RawStdEncoding.DecodeString(packed)
	for next := uint64(0); err == nil && len(b) > 0; {
		gap, n := binary.Uvarint(b)
		more, k := binary.Uvarint(b[n:])
		add(next+gap, next+gap+more)
		next += gap + more + 1
		b = b[n+k:]
	}
	return roles
}
