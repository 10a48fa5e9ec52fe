// Package idle measures what an idle group costs: CPU, from the kernel's accounts of processes, and messages and bytes,
// from its accounts of TCP sockets. Both work the same for every system.
package idle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Usage is the usage per second. A message is a TCP segment with payload: on the loopback device, with its large
// segments, usually one write.
type Usage struct {
	Members         int
	MembersCPU      float64 // of one core, all members together
	ServersCPU      float64
	Memory          float64 `json:",omitempty"` // resident at the end, of the largest member, in bytes
	Messages, Bytes float64 // of members, sent and received
	// Between servers: replication, heartbeats of their own.
	InnerMessages, InnerBytes float64
}

// Resident returns the resident memory of a process, in bytes.
func Resident(pid int) (uint64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	status, err := p.NewStatus()
	return status.VmRSS, err
}

// account is the total usage up to a time.
type account struct {
	at      time.Time
	cpu     map[int]float64
	sockets map[uint64]socket // by inode
}

type socket struct{ sentBytes, sent, gotBytes, got uint64 }

// Measure waits for the window, and returns what members and servers used meanwhile. Without servers, the members are the
// servers.
func Measure(ctx context.Context, window time.Duration, members, servers []int) (Usage, error) {
	var before, after [2]account
	var err error
	for i, pids := range [][]int{members, servers} {
		if before[i], err = read(pids); err != nil {
			return Usage{}, err
		}
	}
	timer := time.NewTimer(window)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return Usage{}, context.Cause(ctx)
	}
	for i, pids := range [][]int{members, servers} {
		if after[i], err = read(pids); err != nil {
			return Usage{}, err
		}
	}
	u := usage(len(members), len(servers) > 0, used(before[0], after[0]), used(before[1], after[1]))
	for _, pid := range members {
		resident, err := Resident(pid)
		if err != nil {
			return Usage{}, err
		}
		u.Memory = max(u.Memory, float64(resident))
	}
	return u, nil
}

// spent is what some processes used per second.
type spent struct {
	cpu                            float64
	sentBytes, sent, gotBytes, got float64
}

// usage separates the traffic of members from that between servers. A socket counts what its own end sent and received.
// Between two members, or two servers, what one received is what the other one sent, and counts once.
func usage(members int, apart bool, m, s spent) Usage {
	u := Usage{Members: members, MembersCPU: m.cpu, ServersCPU: s.cpu, Messages: m.sent, Bytes: m.sentBytes}
	if apart {
		u.Messages += m.got
		u.Bytes += m.gotBytes
		u.InnerMessages = max(0, s.sent-m.got)
		u.InnerBytes = max(0, s.sentBytes-m.gotBytes)
	}
	return u
}

// used counts a new socket from its beginning. A socket that is gone is not counted, since idle groups keep their
// connections.
func used(before, after account) spent {
	seconds := after.at.Sub(before.at).Seconds()
	var u spent
	for pid, cpu := range after.cpu {
		u.cpu += (cpu - before.cpu[pid]) / seconds
	}
	for inode, s := range after.sockets {
		old := before.sockets[inode]
		u.sentBytes += float64(s.sentBytes-old.sentBytes) / seconds
		u.sent += float64(s.sent-old.sent) / seconds
		u.gotBytes += float64(s.gotBytes-old.gotBytes) / seconds
		u.got += float64(s.got-old.got) / seconds
	}
	return u
}

func read(pids []int) (account, error) {
	a := account{at: time.Now(), cpu: map[int]float64{}, sockets: map[uint64]socket{}}
	own := map[uint64]bool{}
	for _, pid := range pids {
		p, err := procfs.NewProc(pid)
		if err != nil {
			return a, err
		}
		stat, err := p.Stat()
		if err != nil {
			return a, err
		}
		a.cpu[pid] = stat.CPUTime()
		targets, err := p.FileDescriptorTargets()
		if err != nil {
			return a, err
		}
		for _, t := range targets {
			var inode uint64
			if _, err := fmt.Sscanf(t, "socket:[%d]", &inode); err == nil && strings.HasPrefix(t, "socket:") {
				own[inode] = true
			}
		}
	}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		found, err := netlink.SocketDiagTCPInfo(family)
		if err != nil {
			return a, fmt.Errorf("reading the accounts of sockets: %w", err)
		}
		for _, s := range slices.DeleteFunc(found, func(s *netlink.InetDiagTCPInfoResp) bool { return s.TCPInfo == nil }) {
			if inode := uint64(s.InetDiagMsg.INode); own[inode] {
				a.sockets[inode] = socket{s.TCPInfo.Bytes_acked, uint64(s.TCPInfo.Data_segs_out), s.TCPInfo.Bytes_received, uint64(s.TCPInfo.Data_segs_in)}
			}
		}
	}
	return a, nil
}
