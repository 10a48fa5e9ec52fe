package cli

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/goneli/neli"
)

// printable quotes a name, id or address if it has characters that could move the terminal's cursor.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// variableOf returns an environment variable with another member's text as its value. It leaves out
// NUL, which would end the value.
func variableOf(name, value string) string {
	return name + "=" + strings.ReplaceAll(value, "\x00", "")
}

const (
	// maxRanges is the largest number of ranges of roles in a line for people.
	maxRanges = 20
	// maxRangesTold is their largest number in an environment variable, which Linux limits to 128 KiB.
	maxRangesTold = 8000
)

// ranges formats a Standing's roles as ranges, "0-4,9". It leaves out the ranges beyond the number most.
func ranges(s neli.Standing, most int) string {
	var parts []string
	for roles := slices.Collect(s.Roles()); len(roles) > 0; {
		if len(parts) == most {
			return strings.Join(append(parts, "…"), ",")
		}
		n := 1
		for n < len(roles) && roles[n] == roles[n-1]+1 {
			n++
		}
		part := fmt.Sprint(roles[0])
		if n > 1 {
			part += fmt.Sprint("-", roles[n-1])
		}
		parts, roles = append(parts, part), roles[n:]
	}
	return strings.Join(parts, ",")
}
