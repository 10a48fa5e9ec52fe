// Command raft is a program with one node of hashicorp/raft and its store in BoltDB. It is built for comparison.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: raft DIRECTORY ADDRESS")
		os.Exit(2)
	}
	if err := contend(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// contend leads, without rivals, until standard input ends.
func contend(dir, addr string) error {
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(addr)
	transport, err := raft.NewTCPTransport(addr, nil, 3, 10*time.Second, os.Stderr)
	if err != nil {
		return err
	}
	store, err := raftboltdb.NewBoltStore(filepath.Join(dir, "raft.db"))
	if err != nil {
		return err
	}
	snapshots, err := raft.NewFileSnapshotStore(dir, 1, os.Stderr)
	if err != nil {
		return err
	}
	node, err := raft.NewRaft(config, noState{}, store, store, snapshots, transport)
	if err != nil {
		return err
	}
	// The configuration exists already if this is not the first start.
	node.BootstrapCluster(raft.Configuration{Servers: []raft.Server{{ID: config.LocalID, Address: transport.LocalAddr()}}})
	go func() {
		for leads := range node.LeaderCh() {
			fmt.Println("leads:", leads)
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, node.Shutdown().Error(), transport.Close(), store.Close())
}

// noState is a state machine without state: only the election matters.
type noState struct{}

func (noState) Apply(*raft.Log) any                 { return nil }
func (noState) Snapshot() (raft.FSMSnapshot, error) { return noState{}, nil }
func (noState) Restore(r io.ReadCloser) error       { return r.Close() }
func (noState) Persist(s raft.SnapshotSink) error   { return s.Close() }
func (noState) Release()                            {}
