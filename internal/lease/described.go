package lease

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxAdvertise = 256
	maxZone      = 64
)

var schemes = []string{"http", "https", "ws", "wss", "grpc", "grpcs"}

// CheckAdvertise returns the rule that an address breaks, "" if it breaks none.
func CheckAdvertise(s string) (rule string) {
	const form = "must be host:port, or a URL with http, https, ws, wss, grpc or grpcs"
	switch {
	case s == "":
		return ""
	case len(s) > maxAdvertise || !plain(s):
		return "must be at most 256 bytes of UTF-8, without blanks and control characters"
	}
	isURL := strings.Contains(s, "://")
	if !isURL {
		s = "//" + s
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || isURL && !slices.Contains(schemes, u.Scheme):
		return form
	case u.User != nil:
		return "must have no user and no password: all who can read the topic read it"
	case u.Hostname() == "" || isAny(u.Hostname()):
		return "must name the host by which other processes reach this one"
	case !isHost(u.Hostname()), strings.Contains(u.Hostname(), ":") && u.Host[0] != '[', u.Port() != "" && !isPort(u.Port()):
		return form
	case !isURL && (u.Port() == "" || u.Path+u.RawQuery+u.Fragment != ""):
		return form
	}
	return ""
}

// CheckZone returns the rule that a zone breaks, "" if it breaks none.
func CheckZone(s string) (rule string) {
	if len(s) > maxZone || !plain(s) {
		return "must be at most 64 bytes of UTF-8, without blanks and control characters"
	}
	return ""
}

// plain reports whether text is valid UTF-8 and has only visible characters, without blanks.
func plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar
	})
}

// isAny reports whether a host is the unspecified address, which names no machine.
func isAny(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsUnspecified()
}

func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return !strings.ContainsFunc(host, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._", r)
	})
}

func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// hint is text that no rule of the lease needs. A value that is not text counts as none, so that
// readers of all releases read the rest of the record alike.
type hint string

// UnmarshalJSON never fails.
func (h *hint) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*string)(h)) != nil {
		*h = ""
	}
	return nil
}

// most is a cap. Like a hint it takes a value of any form.
type most int

// UnmarshalJSON never fails.
func (m *most) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*int)(m)) != nil {
		*m = -1
	}
	return nil
}

// orNone returns the text, or "" if check finds that it breaks a rule.
func (h hint) orNone(check func(string) string) string {
	if check(string(h)) != "" {
		return ""
	}
	return string(h)
}
