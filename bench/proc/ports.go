package proc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports below those that Linux gives to outgoing connections: a server that is
// killed and started again finds its own still free.
const (
	lowestPort  = 12000
	highestPort = 32000
)

// FreeAddrs returns addresses on the loopback device which were free a moment ago.
func FreeAddrs(n int) ([]string, error) {
	var addrs []string
	for range 100 * n {
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", lowestPort+rand.N(highestPort-lowestPort)))
		if err != nil {
			continue
		}
		defer l.Close() // when all are taken: no two are the same
		if addrs = append(addrs, l.Addr().String()); len(addrs) == n {
			return addrs, nil
		}
	}
	return nil, errors.New("no free ports on the loopback device")
}
