package elector

import (
	"errors"
	"log/slog"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/balance"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
)

var errOwnRole = errors.New("this process holds the role itself: call Transfer or StepDown")

// Ask sends a request to the holder of the role, and returns the number of its Outcome. The error
// is ErrUnknown, ErrVacant or ErrLeadsAlready, or says what is wrong with the request.
func (n *Node) Ask(r request.Request, now clock.Instant) (id int, err error) {
	if len(n.shards) == 0 {
		return 0, request.ErrUnknown
	}
	s, local := n.shards.local(r.Role)
	switch token, g := s.Standing(local, now); {
	case token == observe.UnknownToken:
		return 0, request.ErrUnknown
	case token == observe.VacantToken:
		return 0, request.ErrVacant
	case g.Session.Process == n.set.Process:
		return 0, errOwnRole
	case r.Verb == lease.Transfer && n.members.Means(r.To, roster.Self{Process: g.Session.Process, Name: g.Name}, now):
		return 0, balance.ErrLeadsAlready
	default:
		return n.requests.Ask(r, g.Session.Process, n.route, now)
	}
}

// Call asks all members to announce themselves, and returns the number of its Outcome.
func (n *Node) Call(now clock.Instant) (id int, err error) {
	if len(n.shards) == 0 {
		return 0, request.ErrUnknown
	}
	return n.requests.Call(n.route, now)
}

// Accept notes that the application accepts a request, and reports whether it may be carried out.
func (n *Node) Accept(r request.Request) bool {
	s, local := n.shards.local(r.Role)
	return n.requests.Accept(r, s.own.TokenOf(local))
}

// route chooses the log for a letter: the log with the role or, if all logs have all roles, one
// after the other.
func (n *Node) route(role, tries int) int {
	logs := n.channels
	if role != request.AnyRole {
		s, _ := n.shards.local(role)
		logs = s.logs
	}
	return logs[(n.channels.reachable(n.announcer.HomeLog()).index+tries)%len(logs)].index
}

// requested handles a request to this process.
func (n *Node) requested(log int, o int64, r *lease.Record, now clock.Instant) {
	if n.set.Observer {
		return
	}
	refused, why := n.requests.Requested(log, o, r, func() request.Tenure {
		if r.Request.Role >= n.desired.Roles {
			return request.Tenure{Takes: n.set.Requests, Nominated: n.set.Nominated, Token: -1}
		}
		home, local := n.shards.local(r.Request.Role)
		h := home.own.At(local)
		_, leads := home.leases.Leads(local, now)
		leads = leads && h != nil && home.handovers.Of(local) == nil
		// A late request may concern an earlier term: its sender had not read the Claim of this one.
		earlier := leads && home.traits.Earlier(log, home.main.index, r.Read, h.Token)
		return request.Tenure{Takes: n.set.Requests, Nominated: n.set.Nominated, Known: true, Leads: leads, Earlier: earlier,
			Token: home.own.TokenOf(local)}
	}, now)
	if refused != nil {
		n.ready.note(slog.LevelInfo, "request refused", append(refused.Describe(), "error", why)...)
	}
	n.correspond(now)
	n.ready.Requested = n.ready.Requested || n.requests.Waits()
}

// correspond sends the letters of requests and reports their outcomes. It cannot answer a request
// from a log that was read again since; its sender will repeat it.
func (n *Node) correspond(now clock.Instant) {
	letters, ended := n.requests.Take()
	n.ready.ended(ended)
	for _, l := range letters {
		c := n.channels[l.Log]
		if !c.begun || l.Kind == lease.Pong && c.log.Offset() < l.Ping {
			continue
		}
		r := c.word(l.Kind, now)
		r.To, r.Ping, r.Request, r.Answer = l.To, l.Ping, l.Request, l.Answer
		if l.Kind == lease.Pong {
			r.Hello = n.announcement(n.wants(now))
		}
		n.do(now, func(in *In) { c.append(in, r) })
	}
}
