package cli

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/goneli/neli"
)

// printable keeps what others say of themselves, names and ids, from moving the terminal's cursor.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// variableOf makes a variable for a program's environment of what others say: NUL, which would
// end it, is left out.
func variableOf(name, value string) string {
	return name + "=" + strings.ReplaceAll(value, "\x00", "")
}

// maxRanges is how many ranges of roles are written in a line.
const maxRanges = 20

// ranges writes a Standing's roles as ranges, "0-4,9", and cuts what is too long.
func ranges(s neli.Standing) string {
	var parts []string
	for roles := slices.Collect(s.Roles()); len(roles) > 0; {
		if len(parts) == maxRanges {
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
