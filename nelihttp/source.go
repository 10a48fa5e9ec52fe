package nelihttp

import (
	"context"
	"iter"

	"github.com/goneli/neli"
)

// source has the methods of *neli.Neli that the routes need.
type source interface {
	Config() neli.Config
	State() neli.State
	Partitions() int

	IsLeader() bool
	IsLeaderOf(role int) bool
	Token(role int) (token int64, ok bool)
	Led() iter.Seq[int]

	Holder(role int) (neli.Holder, bool)
	Standings() []neli.Standing
	Watch(context.Context) iter.Seq[neli.Standing]
	Members() []neli.Member
	Stats() neli.Stats

	StepDown(context.Context) error
	Transfer(ctx context.Context, role int, to string) error
}

var _ source = (*neli.Neli)(nil)
