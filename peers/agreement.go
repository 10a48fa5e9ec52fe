package peers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/goneli/neli/peers/internal/wire"
)

// protocolVersion is the version of the wire protocol. Hosts and members of different versions
// refuse each other.
const protocolVersion = 1

// agreement is what all hosts and members of a group must have in common. A lease on a majority
// is exclusive only if all use the same logs, and if nobody's lease is longer than the others
// wait.
type agreement struct {
	group   string
	timeout time.Duration // T
	drift   float64       // ρ
	hosts   []Host        // sorted by id
}

func (a agreement) message(host string) *wire.Agreement {
	m := &wire.Agreement{Version: protocolVersion, Group: a.group, TimeoutNanos: int64(a.timeout), MaxClockDrift: a.drift, Host: host}
	for _, h := range a.hosts {
		m.Hosts = append(m.Hosts, &wire.Host{Id: h.ID, Address: h.Address})
	}
	return m
}

// list returns a hash of the list of hosts. A sentinel and a member compare it, because a host refuses
// only processes that reach it: each of two clusters accepts a sentinel with its own list.
func (a agreement) list() string {
	sum := sha256.Sum256([]byte(listed(a.message("").GetHosts())))
	return hex.EncodeToString(sum[:])
}

// differences names every difference from another agreement, with both values.
func (a agreement) differences(other *wire.Agreement) []string {
	if v := other.GetVersion(); v != protocolVersion {
		// The rest of a message of another version may have another meaning.
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
	if here, there := listed(a.message("").GetHosts()), listed(other.GetHosts()); here != there {
		d = append(d, fmt.Sprintf("list of log hosts: %d, [%s] here, %d, [%s] there",
			len(a.hosts), here, len(other.GetHosts()), brief(there)))
	}
	return d
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
