package roster

import (
	"strconv"
	"strings"
	"unicode"
)

// Harmless returns text from another process in a form that people can safely view: quoted if it
// contains characters that move the cursor or change the direction of a line.
func Harmless(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }) {
		return strconv.Quote(s)
	}
	return s
}
