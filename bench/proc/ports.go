package proc

import "net"

// FreeAddrs returns addresses on the loopback device which were free a moment ago.
func FreeAddrs(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // when all are taken: no two are the same
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}
