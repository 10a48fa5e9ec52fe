package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/witness"
)

// election is a group of member processes that contend for the same roles. When the test ends, all of them are killed, and
// everything that they saw is checked against the promises of their mode. A case adds its own expectations.
type election struct {
	t       *testing.T
	env     *env
	params  contenderParams // of every member, unless its start says otherwise
	dir     string
	members []*member
	serial  int

	// bound, in exclusive mode, is the longest time that a role may be vacant between two leaders. In non-exclusive
	// mode it is the longest time without a leader, and zero means that no instant may be without one.
	bound time.Duration
	// settled, in non-exclusive mode, is the time from which the promises are checked; settle sets it.
	settled time.Duration
}

var (
	electionSerial atomic.Int64
	suiteStarted   = strconv.FormatInt(time.Now().UnixNano(), 36)
)

// fresh is a part of a name that was never used: a foreign broker still has the topics of earlier runs.
func fresh() string { return fmt.Sprintf("%s-%d", suiteStarted, electionSerial.Add(1)) }

// newElection prepares an election in a group and a topic of its own.
func newElection(t *testing.T, e *env, params contenderParams) *election {
	t.Helper()
	dir, err := os.MkdirTemp("", "neli-members-")
	require.NoError(t, err)
	name := fmt.Sprintf("neli-%s-%s", slug(t.Name()), fresh())
	params.Group = either(params.Group, name)
	params.Topic = either(params.Topic, name)
	params.Bootstrap = either(params.Bootstrap, e.bootstrap)
	params.Roles = max(1, params.Roles)
	params.Partitions = max(1, params.Partitions)
	el := &election{t: t, env: e, params: params, dir: dir}
	t.Cleanup(el.finish)
	return el
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// slug makes a name of a test fit for topics.
func slug(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '-'
	}, name)
}

// drives lists the ways in which members drive their Neli. Members use them in turn.
var drives = []drive{driveBackground, driveLead, drivePulse}

// start starts a member with the election's settings, modified by change.
func (e *election) start(name string, change ...func(*memberParams)) *member {
	e.t.Helper()
	c := e.params
	if c.Drive == "" {
		c.Drive = drives[e.serial%len(drives)]
	}
	e.serial++
	params := memberParams{Name: fmt.Sprintf("%s-%d", name, e.serial), Contenders: []contenderParams{c}}
	for _, f := range change {
		f(&params)
	}
	m := startMember(e.t, e.dir, params)
	e.members = append(e.members, m)
	return m
}

// follow starts members and waits until each has read what the leader writes.
func (e *election) follow(names ...string) []*member {
	e.t.Helper()
	var out []*member
	for _, name := range names {
		out = append(out, e.start(name))
	}
	for _, m := range out {
		e.follows(m)
	}
	return out
}

// follows waits until the member is ready to take over.
func (e *election) follows(m *member) {
	e.t.Helper()
	if e.params.Mode == neli.Exclusive {
		waitUntil(e.t, patience, fmt.Sprintf("%s reads", m), func() bool { return m.Records(0) > 0 })
	}
	if e.grouped() {
		m.logs(assignedLine, 1, patience)
	}
}

// assignedLine is logged whenever the group has completed an assignment.
const assignedLine = `msg="the group assigned"`

func (e *election) grouped() bool {
	return e.params.Mode == neli.NonExclusive || e.params.Nomination == neli.NominationAssigned
}

// held is a role under a member's leadership.
type held struct {
	*member
	role  int
	token int64
	since time.Duration // when it was first proven
}

// leader waits until a member other than these leads the role.
func (e *election) leader(role int, within time.Duration, except ...*member) held {
	e.t.Helper()
	var h held
	waitUntil(e.t, within, fmt.Sprintf("role %d has a leader", role), func() bool {
		for _, m := range e.members {
			if token, ok := m.leads(0, role); ok && !slices.Contains(except, m) {
				h = held{m, role, token, m.answeredSince(0, role)}
				return true
			}
		}
		return false
	})
	return h
}

// suspendLeader suspends a role's leader while it leads, and returns when the suspension began. A leader that gets no
// processor for T loses its lease by itself; then suspendLeader waits for the next leader.
func (e *election) suspendLeader(role int) (h held, at time.Duration) {
	e.t.Helper()
	waitUntil(e.t, patience, fmt.Sprintf("the leader of role %d is suspended", role), func() bool {
		h = e.leader(role, patience)
		// A member is told of a term when it begins. If it were suspended before that, it would be told late.
		waitUntil(e.t, patience, fmt.Sprintf("%s is told of its term", h), func() bool { return h.told() })
		at = h.suspend()
		if r, ok := h.Samples.Latest(0, role); ok && r.Answer == h.token {
			return true
		}
		h.wake()
		return false
	})
	return h, at
}

// told reports whether the member's application knows of this term.
func (h held) told() bool {
	return slices.ContainsFunc(h.events("acquired"), func(e eventLine) bool {
		return e.Contender == 0 && slices.ContainsFunc(e.Terms, func(t neli.Term) bool { return t.Token == h.token })
	})
}

// allLed waits until every role has a leader.
func (e *election) allLed(within time.Duration) {
	e.t.Helper()
	deadline := witness.Now() + within
	for role := range e.params.Roles {
		e.leader(role, deadline-witness.Now())
	}
}

// settle waits until every role has a leader. From now on each must have one.
func (e *election) settle() {
	e.t.Helper()
	e.allLed(firstLeader)
	e.settled = witness.Now()
}

// holds asserts that this term continues, by a sample that begins after the call.
func (e *election) holds(h held) {
	e.t.Helper()
	h.sampledMore(2)
	token, ok := h.leads(0, h.role)
	assert.True(e.t, ok, "%s has lost role %d", h.member, h.role)
	assert.Equal(e.t, h.token, token, "another term of %s", h.member)
}

// soleTerm asserts that the role was led only in this one term.
func (e *election) soleTerm(h held) {
	e.t.Helper()
	e.holds(h)
	for _, t := range e.terms(0, h.role) {
		assert.Equal(e.t, h.token, t.Token, "role %d: %v", h.role, t)
	}
}

// terms returns the terms of a role, of all members.
func (e *election) terms(contender, role int) []witness.Term {
	var out []witness.Term
	for _, m := range e.members {
		if contender < len(m.params.Contenders) {
			out = append(out, witness.Terms(m.params.Name, m.Samples.Runs().Of(contender, role))...)
		}
	}
	return out
}

// neverAgain asserts that the member has not led the role under this token since.
func (e *election) neverAgain(h held, since time.Duration) {
	e.t.Helper()
	for _, r := range h.Samples.Runs().Of(0, h.role) {
		if r.Answer == h.token {
			assert.Less(e.t, r.Last.Before, since, "%s led under token %d again", h.member, h.token)
		}
	}
}

// finish kills all members, and checks what they saw against the promises.
func (e *election) finish() {
	end := witness.Now()
	for _, m := range e.members {
		m.Kill()
	}
	if len(e.members) > 0 {
		e.verify(end)
	}
	if e.t.Failed() {
		e.keep()
	}
	for _, m := range e.members {
		_ = m.Samples.Close()
	}
	_ = os.RemoveAll(e.dir)
}

// keep saves the members' files, and prints the end of their logs.
func (e *election) keep() {
	dir := filepath.Join("logs", slug(e.t.Name()), filepath.Base(e.dir))
	if err := os.CopyFS(dir, os.DirFS(e.dir)); err != nil {
		e.t.Logf("keeping the members' logs: %v", err)
	} else {
		e.t.Logf("the members' logs and events are in %s", dir)
	}
	for _, m := range e.members {
		e.t.Logf("--- %s, last lines of its log:\n%s", m, m.tail(15))
	}
}
