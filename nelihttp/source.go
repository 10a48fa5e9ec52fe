package nelihttp

import (
	"context"
	"iter"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/inside"
)

// source is what the routes need of a member.
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

// member is a Neli with the numbers of its partitions and roles, which it does not show itself.
type member struct{ *neli.Neli }

func (m member) Partitions() int { return inside.Partitions(m.Neli) }
func (m member) Roles() int      { return inside.Roles(m.Neli) }

var (
	_ source  = member{}
	_ leaders = member{}
)
