package member

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// raftContender is a node: here the members are the servers, too.
type raftContender struct {
	*raft.Raft
	transport *raft.NetworkTransport
	store     *raftboltdb.BoltStore
}

// patience bounds a transport's waits.
const patience = 10 * time.Second

func newRaft(p Params) (Contender, error) {
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(p.Name)
	config.LogOutput = io.Discard
	config.LogLevel = "ERROR"
	if p.Lease > 0 {
		config.HeartbeatTimeout, config.ElectionTimeout, config.LeaderLeaseTimeout = p.Lease, p.Lease, p.Lease
		config.CommitTimeout = p.Lease / 10 // the ratio that the library's own tests use
	}
	addr, err := net.ResolveTCPAddr("tcp", p.Node.Addr)
	if err != nil {
		return nil, err
	}
	c := &raftContender{}
	if c.transport, err = raft.NewTCPTransport(p.Node.Addr, addr, 3, patience, io.Discard); err != nil {
		return nil, err
	}
	if c.store, err = raftboltdb.NewBoltStore(filepath.Join(p.Node.Dir, "raft.db")); err != nil {
		return nil, err
	}
	snapshots, err := raft.NewFileSnapshotStore(p.Node.Dir, 1, io.Discard)
	if err != nil {
		return nil, err
	}
	known, err := raft.HasExistingState(c.store, c.store, snapshots)
	if err != nil {
		return nil, err
	}
	if !known {
		var first raft.Configuration
		for _, v := range p.Node.Voters {
			first.Servers = append(first.Servers, raft.Server{ID: raft.ServerID(v.ID), Address: raft.ServerAddress(v.Addr)})
		}
		if err := raft.BootstrapCluster(config, c.store, c.store, snapshots, c.transport, first); err != nil {
			return nil, err
		}
	}
	c.Raft, err = raft.NewRaft(config, noState{}, c.store, c.store, snapshots, c.transport)
	return c, err
}

// Leads returns what the node believes. VerifyLeader would also cost a round trip to the other nodes.
func (c *raftContender) Leads() bool { return c.State() == raft.Leader }

// Ready reports whether it leads, or has heard from a leader in the last second.
func (c *raftContender) Ready() bool {
	_, leader := c.LeaderWithID()
	return leader != "" && (c.State() == raft.Leader || time.Since(c.LastContact()) < time.Second)
}

// Close transfers leadership before it shuts down.
func (c *raftContender) Close() error {
	var err error
	if c.State() == raft.Leader {
		err = c.LeadershipTransfer().Error()
	}
	return errors.Join(err, c.Shutdown().Error(), c.transport.Close(), c.store.Close())
}

// noState is a state machine without state, since only the election is measured.
type noState struct{}

func (noState) Apply(*raft.Log) any                 { return nil }
func (noState) Snapshot() (raft.FSMSnapshot, error) { return noState{}, nil }
func (noState) Restore(r io.ReadCloser) error       { return r.Close() }
func (noState) Persist(s raft.SnapshotSink) error   { return s.Close() }
func (noState) Release()                            {}
