// Command etcd is a program with an etcd member inside and an election on it. It is built for comparison.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: etcd DIRECTORY")
		os.Exit(2)
	}
	if err := contend(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// contend leads, without rivals, until standard input ends.
func contend(ctx context.Context, dir string) error {
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel = dir, "error"
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		return err
	}
	client := v3client.New(e.Server)
	defer client.Close()
	session, err := concurrency.NewSession(client)
	if err != nil {
		return err
	}
	election := concurrency.NewElection(session, "footprint")
	if err := election.Campaign(ctx, "it"); err != nil {
		return err
	}
	fmt.Println("leads")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, election.Resign(ctx), session.Close())
}
