package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// This file reads the file of --config: Java's syntax of properties, of which librdkafka's is a part unless a
// value has a backslash. Where the two, or people's habits, give one line two meanings, the line is refused.
// No error quotes a value, which may be a secret.

// mostProperties is the largest size of the file in bytes. It may hold certificates.
const mostProperties = 1 << 20

// given is a property and where it was given: "client.properties:3", "-X" and so on.
type given struct{ name, value, where string }

// readProperties reads the properties of a file. Its error has all faults.
func readProperties(file string) ([]given, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseProperties(file, b)
}

func parseProperties(file string, b []byte) ([]given, error) {
	b = bytes.TrimPrefix(b, []byte("\uFEFF"))
	switch {
	case len(b) > mostProperties:
		return nil, fmt.Errorf("%s: must be at most 1 MiB: is it a file of properties?", file)
	case bytes.HasPrefix(b, []byte{0xFF, 0xFE}), bytes.HasPrefix(b, []byte{0xFE, 0xFF}), looksWide(b):
		return nil, fmt.Errorf("%s: is in UTF-16: save it as UTF-8, for instance with iconv -f UTF-16 -t UTF-8", file)
	case bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")):
		return nil, fmt.Errorf("%s: is JSON: write one name=value per line", file)
	}
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(b))
	r := &propertyReader{lines: strings.Split(text, "\n")}
	var props []given
	var errs []error
	for r.next < len(r.lines) {
		at := r.next + 1
		name, value, err := r.property()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", file, at, err))
		} else if name != "" {
			props = append(props, given{name, value, fmt.Sprintf("%s:%d", file, at)})
		}
	}
	return props, errors.Join(errs...)
}

// looksWide reports whether every other of the first four bytes is NUL, as in UTF-16 without a byte-order mark.
func looksWide(b []byte) bool {
	return len(b) >= 4 && (b[0] == 0 && b[2] == 0 || b[1] == 0 && b[3] == 0)
}

// propertyReader takes lines apart.
type propertyReader struct {
	lines []string
	next  int
}

var (
	errNotProperty = errors.New("must be name=value")
	nameOfProperty = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	section        = regexp.MustCompile(`^\[.*\]$`)
	placeholder    = regexp.MustCompile(`^\$\{[^}]*\}$`)
)

// property reads the next property, which may take several lines. The name is empty for a line without one.
func (r *propertyReader) property() (name, value string, err error) {
	line := r.line()
	switch trimmed := strings.TrimSpace(line); {
	case trimmed == "", trimmed[0] == '#', trimmed[0] == '!':
		return "", "", nil
	case section.MatchString(trimmed):
		return "", "", errors.New("sections in brackets are not read: leave this line out; a file has the properties of one client")
	case trimmed == "---":
		return "", "", errors.New("this looks like YAML: write one name=value per line")
	}
	for continued(line) && r.next < len(r.lines) {
		line = strings.TrimSuffix(line, `\`) + strings.TrimLeftFunc(r.line(), unicode.IsSpace)
	}
	if line = strings.TrimSpace(line); !utf8.ValidString(line) {
		return "", "", errors.New("is not UTF-8: save the file as UTF-8, for instance with iconv -f LATIN1 -t UTF-8")
	}
	if strings.ContainsRune(line, 0) {
		return "", "", errors.New("has a NUL byte: the file is damaged or not text")
	}
	end := strings.IndexAny(line, "=:")
	if end < 0 || strings.TrimSpace(line[:end]) == "" {
		return "", "", errNotProperty
	}
	name, value = strings.TrimSpace(line[:end]), strings.TrimSpace(line[end+1:])
	if !nameOfProperty.MatchString(name) {
		return "", "", errors.New("must be name=value; a name has only letters, digits, '.', '_' and '-' (a character may be invisible)")
	}
	value, err = plain(r.certificate(value), strings.Contains(value, "-----BEGIN "))
	return name, value, err
}

func (r *propertyReader) line() string {
	r.next++
	return r.lines[r.next-1]
}

// continued reports whether a line ends with a backslash that no other one escapes.
func continued(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// certificate adds the further lines of a value in PEM format that was not put into one line.
func (r *propertyReader) certificate(value string) string {
	if !strings.HasPrefix(value, "-----BEGIN ") {
		return value
	}
	for r.next < len(r.lines) {
		line := strings.TrimSpace(r.lines[r.next])
		complete := strings.Count(value, "-----BEGIN ") == strings.Count(value, "-----END ")
		if complete && !strings.HasPrefix(line, "-----BEGIN ") || strings.Contains(line, "=-") {
			break
		}
		value += `\n` + line
		r.next++
	}
	return value
}

// plain returns a value without escapes, or an error if people may mean different things by it. pem: it is in
// PEM format, whose lines may be joined by \n.
func plain(value string, pem bool) (string, error) {
	switch n := len(value); {
	case n >= 2 && value[0] == value[n-1] && (value[0] == '"' || value[0] == '\''):
		return "", errors.New(`the quotes would be part of the value: leave them out, or write \" if they belong to it`)
	case placeholder.MatchString(value):
		return "", errors.New("${…} is not replaced here: write the value itself")
	}
	var out strings.Builder
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c == '#' && i > 0 && (value[i-1] == ' ' || value[i-1] == '\t') {
			return "", errors.New(`"#" begins no comment behind a value: put the comment on a line of its own, or write \# if it belongs to the value`)
		}
		if c != '\\' {
			out.WriteByte(c)
			continue
		}
		used, text, err := escaped(value[i:], pem)
		if err != nil {
			return "", err
		}
		out.WriteString(text)
		i += used - 1
	}
	return out.String(), nil
}

// escaped returns what an escape at the start of s stands for, and its length.
func escaped(s string, pem bool) (used int, text string, err error) {
	switch {
	case len(s) < 2:
		return 0, "", errors.New(`the file ends with a backslash: write \\ for one that belongs to the value`)
	case s[1] == 'u':
		return escapedRune(s)
	case s[1] == 'n' && pem:
		return 2, "\n", nil
	case s[1] == 'r' && pem:
		return 2, "", nil
	case s[1] == '\t' || s[1] == ' ' || s[1] > ' ' && s[1] < utf8.RuneSelf && !isAlphanumeric(s[1]):
		return 2, s[1:2], nil
	}
	return 0, "", errors.New(`a backslash is written \\ (a single one begins an escape of Java's properties, such as \u00e9, \= or \:)`)
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// escapedRune reads \uXXXX, of which two make one character beyond U+FFFF.
func escapedRune(s string) (used int, text string, err error) {
	unit := func(s string) (rune, bool) {
		if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(s[2:6], 16, 16)
		return rune(n), err == nil
	}
	first, ok := unit(s)
	switch {
	case !ok:
		return 0, "", errors.New(`\u must be followed by four hexadecimal digits; a backslash is written \\`)
	case !utf16.IsSurrogate(first):
		return 6, string(first), nil
	}
	second, _ := unit(s[6:])
	r := utf16.DecodeRune(first, second)
	if r == unicode.ReplacementChar {
		return 0, "", errors.New(`\u has half of a character beyond U+FFFF: write the character itself`)
	}
	return 12, string(r), nil
}
