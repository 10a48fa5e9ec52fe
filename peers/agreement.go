package peers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli/peers/internal/wire"
)

// protocolVersion is the version of the wire protocol. Hosts and members of different versions refuse each other.
const protocolVersion = 1

// agreement is what all hosts and members of a group must have in common. A lease on a majority
// is exclusive only if any two processes have a list of logs in common, and if none waits for less
// time than another's lease lasts.
type agreement struct {
	group   string
	timeout time.Duration // T
	drift   float64       // ρ
	hosts   []Host        // sorted by id
	next    []Host        // the new list while the list changes; sorted by id
}

// all returns the hosts of both lists, sorted by id. That is the order of the logs.
func (a agreement) all() []Host { return both(a.hosts, a.next) }

func both(hosts, next []Host) []Host { return slices.Compact(sorted(slices.Concat(hosts, next))) }

func (a agreement) message(host string) *wire.Agreement {
	m := &wire.Agreement{Version: protocolVersion, Group: a.group, TimeoutNanos: int64(a.timeout), MaxClockDrift: a.drift, Host: host}
	for _, h := range a.hosts {
		m.Hosts = append(m.Hosts, &wire.Host{Id: h.ID, Address: h.Address})
	}
	for _, h := range a.next {
		m.Next = append(m.Next, &wire.Host{Id: h.ID, Address: h.Address})
	}
	return m
}

// list returns a hash of the list of hosts. A sentinel and a member compare their hashes. If their lists
// name different clusters, no host refuses either, since each reaches only the cluster on its own list.
func (a agreement) list() string {
	sum := sha256.Sum256([]byte(described(a.message(""))))
	return hex.EncodeToString(sum[:])
}

// differences names what a host refuses in another agreement, with both values.
func (a agreement) differences(other *wire.Agreement) []string {
	if v := other.GetVersion(); v != protocolVersion {
		// In a message of another version, the other fields may mean something else.
		return []string{fmt.Sprintf("protocol version: %d here, %d there", protocolVersion, v)}
	}
	var d []string
	if g := other.GetGroup(); g != a.group {
		d = append(d, fmt.Sprintf("group: %q here, %q there", a.group, brief(g)))
	}
	if t := time.Duration(other.GetTimeoutNanos()); t != a.timeout {
		d = append(d, fmt.Sprintf("HeartbeatTimeout: %v here, %v there", a.timeout, t))
	}
	if r := other.GetMaxClockDrift(); r != a.drift {
		d = append(d, fmt.Sprintf("MaxClockDrift: %v here, %v there", a.drift, r))
	}
	own := a.message("")
	if here, there := listsOf(own), listsOf(other); !here.serve(there) && !here.newAlone(there) {
		d = append(d, fmt.Sprintf("list of log hosts: %d, %s here, %d, %s there; from one list to the next, all must first have both (Config.Next)",
			len(a.hosts), described(own), len(other.GetHosts()), brief(described(other))))
	}
	return d
}

func described(m *wire.Agreement) string {
	text := "[" + listed(m.GetHosts()) + "]"
	if len(m.GetNext()) > 0 {
		text += ", next [" + listed(m.GetNext()) + "]"
	}
	return text
}

func listed(hosts []*wire.Host) string {
	var parts []string
	for _, h := range hosts {
		parts = append(parts, h.GetId()+"="+h.GetAddress())
	}
	return strings.Join(parts, " ")
}

// brief shortens a stranger's text.
func brief(s string) string {
	const most = 1000
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}
