package fence

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Header is the name of the record header that holds a writer's token.
const Header = "neli-token"

// Stamp returns the value of Header for a record of a role's leader: "<token> <role> <group>". A
// group is UTF-8, as Config.LeaderGroupID is.
//
// The writer uses an idempotent producer with acks=all. Before a new leader acts, it writes a
// barrier, which is a record with this header and nothing else, to each partition that it may read
// or write. It waits until all barriers are acknowledged, and reads each partition up to its
// barrier through a Filter. A leader reports a write as successful only if Leadership.Valid is true
// after the acknowledgement, because readers drop records that come after a successor's barrier.
func Stamp(token int64, role int, group string) []byte {
	value := strconv.AppendInt(nil, token, 10)
	value = strconv.AppendInt(append(value, ' '), int64(role), 10)
	return append(append(value, ' '), group...)
}

// source is the role whose tokens are compared with each other.
type source struct {
	group string
	role  int
}

// read parses what Stamp has written. It accepts numbers only as strconv writes them. It refuses a
// group that is not UTF-8: no group has such a name, and it would not survive Filter.State, which
// is JSON.
func read(header []byte) (int64, source, error) {
	fields := bytes.SplitN(header, []byte(" "), 3)
	if len(fields) == 3 && utf8.Valid(fields[2]) {
		token, err := strconv.ParseInt(string(fields[0]), 10, 64)
		role, err2 := strconv.Atoi(string(fields[1]))
		if s := (source{string(fields[2]), role}); err == nil && err2 == nil && bytes.Equal(Stamp(token, role, s.group), header) {
			return token, s, nil
		}
	}
	return 0, source{}, fmt.Errorf("fence: header %s is %.100q (%d bytes), must be \"<token> <role> <group>\"", Header, header, len(header))
}
