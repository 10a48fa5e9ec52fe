package neli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// How what others see is written as JSON, for pages and programs in other languages:
// durations are seconds, a status is a word, roles are ranges. What was written can be
// read again.

// seconds is a duration as JSON has it.
type seconds time.Duration

func (s seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

func (s *seconds) UnmarshalJSON(b []byte) error {
	var f float64
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	if f *= float64(time.Second); f < -1<<63 || f >= 1<<63 {
		return fmt.Errorf("neli: duration of %s seconds: too long", b)
	}
	*s = seconds(f)
	return nil
}

// MarshalText returns "unknown", "vacant" or "held".
func (s Status) MarshalText() ([]byte, error) { return textOf("Status", int(s), statusNames[:]...) }

// UnmarshalText reads what MarshalText wrote.
func (s *Status) UnmarshalText(b []byte) error { return ofText(s, "Status", b, statusNames[:]...) }

// These have the fields of a type and none of its methods.
type (
	plainHolder   Holder
	plainMember   Member
	plainStanding Standing
)

// MarshalJSON writes Age in seconds. Token is a number of up to 63 bits, which
// JavaScript rounds from 2^53 on.
func (h Holder) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainHolder
		Age seconds `json:"age"`
	}{plainHolder(h), seconds(h.Age)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (h *Holder) UnmarshalJSON(b []byte) error {
	of := struct {
		*plainHolder
		Age *seconds `json:"age"`
	}{(*plainHolder)(h), (*seconds)(&h.Age)}
	return json.Unmarshal(b, &of)
}

// MarshalJSON writes Age in seconds.
func (m Member) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainMember
		Age seconds `json:"age"`
	}{plainMember(m), seconds(m.Age)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (m *Member) UnmarshalJSON(b []byte) error {
	of := struct {
		*plainMember
		Age *seconds `json:"age"`
	}{(*plainMember)(m), (*seconds)(&m.Age)}
	return json.Unmarshal(b, &of)
}

// MarshalJSON writes the roles as ranges, and how many they are.
func (s Standing) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainStanding
		Roles string `json:"roles"`
		Count int    `json:"count"`
	}{plainStanding(s), rangesOf(s.roles), len(s.roles)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Standing) UnmarshalJSON(b []byte) error {
	of := struct {
		*plainStanding
		Roles string `json:"roles"`
	}{plainStanding: (*plainStanding)(s)}
	if err := json.Unmarshal(b, &of); err != nil {
		return err
	}
	var err error
	s.roles, err = parseRanges(of.Roles)
	return err
}

// rangesOf writes ascending roles as ranges: "0-4,9".
func rangesOf(roles []int) string {
	var b []byte
	for i := 0; i < len(roles); {
		k := i + 1
		for k < len(roles) && roles[k] == roles[k-1]+1 {
			k++
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(roles[i]), 10)
		if k > i+1 {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(roles[k-1]), 10)
		}
		i = k
	}
	return string(b)
}

// parseRanges reads what rangesOf wrote.
func parseRanges(s string) ([]int, error) {
	if s == "" {
		return nil, nil
	}
	var roles []int
	for r := range strings.SplitSeq(s, ",") {
		low, high, ranged := strings.Cut(r, "-")
		first, err := strconv.ParseUint(low, 10, 31)
		last := first
		if ranged && err == nil {
			last, err = strconv.ParseUint(high, 10, 31)
		}
		if err != nil || last < first || last >= maxRoles || len(roles) > 0 && int(first) <= roles[len(roles)-1] {
			return nil, fmt.Errorf("neli: roles: %q: must be ascending ranges of numbers below %d", r, maxRoles)
		}
		for role := first; role <= last; role++ {
			roles = append(roles, int(role))
		}
	}
	return roles, nil
}
