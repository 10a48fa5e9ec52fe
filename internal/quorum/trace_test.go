package quorum

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/judge"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/mutation"
	"github.com/goneli/neli/internal/seeded"
)

const (
	traceEvents = 300  // of a trace, for each of up to three logs
	traceBatch  = 3    // traces that TLC reads at a time
	traceRho    = 0.05 // ρ
)

// A tracer writes what the processes of a simulation did and believed for spec/TraceMajority.tla.
// Without one, its methods do nothing.
type tracer struct {
	lines    []string
	sends    map[*simEntry]int // the line where a record was sent
	arrives  map[*simEntry]int // the line where it arrived last
	entries  map[int]*simEntry // by line
	read     map[string]clock.Instant
	sessions map[string][]uint64 // by process: of each log, 0 before it begins
}

// traceProfile has what the specification has: no lost offset, no reported ballot, one wanted role.
func traceProfile(logs int) func(*rand.Rand) simProfile {
	return func(r *rand.Rand) simProfile {
		p := of(r, plainProfile, huntProfile)(r)
		p.logs, p.procs, p.roles, p.rho, p.sigma = logs, 3, 1, traceRho, clock.Sigma/5
		p.wantAll, p.wish, p.lose, p.tops = true, 0, 0, false
		return p
	}
}

func traceOf(seed uint64, logs int) *simWorld {
	w := newSimWorld(seed, traceProfile(logs))
	w.tracer = &tracer{arrives: map[*simEntry]int{}, sends: map[*simEntry]int{}, entries: map[int]*simEntry{}, read: map[string]clock.Instant{}, sessions: map[string][]uint64{}}
	w.Run(w.pr.horizon, func() bool { return len(w.tracer.lines) >= min(logs, 3)*traceEvents })
	return w
}

// event adds what p did on a log, with the time that has passed. believes says that p has finished its
// step, so that the specification compares what p believes.
func (t *tracer) event(p *simProc, what string, log int, believes bool, format string, args ...any) {
	now, name, b := p.now(), p.String(), "<<>>"
	was, again := t.read[name]
	if t.read[name] = now; !again {
		was = now
	}
	if believes {
		b = p.belief(now)
	}
	t.lines = append(t.lines, fmt.Sprintf("what |-> %q, p |-> %q, log |-> %d, h |-> %d, c |-> %d, n |-> %d, wall |-> %d, b |-> %s%s", what, name, log+1,
		now.Wall.Sub(was.Wall).Microseconds(), now.Raw.Sub(was.Raw).Microseconds(), p.q.Log(log).Session().N, traceBallot(micros(now)), b, fmt.Sprintf(format, args...)))
}

// renews notes new sessions of p, unless it begins on that log.
func (t *tracer) renews(p *simProc, begins int) {
	if t == nil {
		return
	}
	was := t.sessions[p.String()]
	for log := range p.logs {
		n := p.q.Log(log).Session().N
		if len(was) == log {
			was = append(was, n)
		}
		if was[log] != n && log != begins {
			t.event(p, "anew", log, false, "")
		}
		was[log] = n
	}
	t.sessions[p.String()] = was
}

func (t *tracer) begins(p *simProc, log int, x *incarnation, s int64) {
	if t != nil {
		t.renews(p, log)
		t.event(p, "begin", log, true, ", s |-> %d", s)
	}
}

func (t *tracer) reads(p *simProc, log int) {
	if t != nil {
		t.event(p, "read", log, true, "")
	}
}

// sending puts fresh Claims first, since they lift the ballot of all Claims that are made with them.
func (t *tracer) sending(p *simProc, out []Out) {
	if t == nil {
		return
	}
	t.renews(p, -1)
	claims := slices.IndexFunc(out, func(o Out) bool { return o.Record.Kind == lease.Claim })
	for i := claims + 1; claims >= 0 && i < len(out); i++ {
		if out[i].Record.Fresh {
			out[claims], out[i] = out[i], out[claims]
			claims++
		}
	}
}

func traceEnded(r *lease.Record) string {
	var ended []string
	for _, g := range r.Ended {
		ended = append(ended, judge.Grants(g.Token, g.Roles)...)
	}
	return judge.Set(ended)
}

func (t *tracer) sent(p *simProc, o Out, e *simEntry, last bool) {
	if t == nil {
		return
	}
	r, kind := e.r, strings.ToUpper(string(e.r.Kind[:1]))+string(e.r.Kind[1:])
	t.sends[e], t.entries[len(t.lines)] = len(t.lines), e
	t.event(p, "send", o.Log, last, ", kind |-> %q, by |-> <<%q, %d>>, read |-> %d, longest |-> %d, fresh |-> %s, ended |-> %s, ballot |-> %d, number |-> %d",
		kind, r.Session.Process, r.Session.N, r.Read, judge.Micros(r.Longest), judge.Bool(r.Fresh), traceEnded(r), traceBallot(r.Ballot), t.sends[e])
}

func (t *tracer) world(what string, log int, e *simEntry) {
	if t == nil {
		return
	}
	number := 0
	if e != nil {
		t.arrives[e], t.entries[len(t.lines)], number = len(t.lines), e, t.sends[e]
	}
	t.lines = append(t.lines, fmt.Sprintf("what |-> %q, p |-> \"\", log |-> %d, h |-> 0, c |-> 0, number |-> %d", what, log+1, number))
}

// belief returns what the operator Believes returns. It calls check first, as every input does.
func (p *simProc) belief(now clock.Instant) string {
	p.q.check(now)
	left := func(at clock.Raw) int64 { return judge.Micros(max(0, at.Sub(now.Raw))) }
	life := func(v clock.Instant) int64 {
		if v == (clock.Instant{}) {
			return 0
		}
		return judge.Micros(max(0, clock.Hold(simT)-now.Age(v)))
	}
	token, bound := int64(0), int64(0)
	if t, line, ok := p.q.Term(0); ok {
		token, bound = t, life(p.q.V(line))
	}
	var logs []string
	for log := range p.logs {
		l := p.q.Log(log)
		switch {
		case p.logs[log].in == nil:
			logs = append(logs, "<<>>")
		case !l.Known():
			logs = append(logs, fmt.Sprintf("<<%d, %d, %d>>", l.Session().N, l.Offset(), left(l.FreshAt())))
		default:
			holder, at := "<<>>", "-1, -1, 0"
			if g, ok := l.Holder(0); ok {
				holder = fmt.Sprintf("<<%q, %d>>", g.Session.Process, g.Session.N)
				at = fmt.Sprintf("%d, %d, %d", g.Token, g.Last, left(l.FreeAt(0)))
			}
			logs = append(logs, fmt.Sprintf("<<%d, %d, %d, %d, %s, %s>>", l.Session().N, l.Offset(), life(l.V()), traceBallot(l.Back()), holder, at))
		}
	}
	return fmt.Sprintf("<<%d, %d, %d, %d, <<%s>>>>", traceBallot(token), traceBallot(p.q.bal), traceBallot(p.q.seen), bound, strings.Join(logs, ", "))
}

// traceBallot makes a ballot fit into 32 bits: those that come from a wall clock begin at 10 s.
func traceBallot(b int64) int64 {
	if b >= 1<<32 {
		b += 10_000_000 - int64(simEpoch)/1000
	}
	return b
}

// trace returns the whole trace. Only at the end is it known which records arrive, and which again.
func (t *tracer) trace() string {
	for i, e := range t.entries {
		if last, arrives := t.arrives[e]; t.sends[e] == i {
			t.lines[i] += ", lost |-> " + judge.Bool(!arrives)
		} else {
			t.lines[i] += ", again |-> " + judge.Bool(last > i)
		}
	}
	return "[" + strings.Join(t.lines, "],\n[") + "]"
}

// TestTracesAreAllowed lets TLC decide whether the specification allows what the Lease does and
// believes in simulations with one log, three and five. make spec runs it.
func TestTracesAreAllowed(t *testing.T) {
	judge.Jar(t)
	seeds := seeded.Seeds(traceBatch)
	for _, logs := range []int{1, 3, 5} {
		for first := 1; first <= seeds; first += traceBatch {
			t.Run(fmt.Sprintf("%d logs, from %d", logs, first), func(t *testing.T) {
				leases := map[string]time.Duration{}
				var traces []string
				for seed := first; seed < min(first+traceBatch, seeds+1); seed++ {
					w := traceOf(uint64(seed), logs)
					for name := range w.tracer.read {
						leases[name] = simT
					}
					traces = append(traces, w.tracer.trace())
				}
				judge.Traces(t, "TraceMajority", traceRho, leases, traces, fmt.Sprintf("Logcount == %d", logs))
			})
		}
	}
}

// bySpecification are rules whose lack the specification must notice in traces.
var bySpecification = []string{
	"reading back an own valid Claim lifts the ballot above all noted ones",
	"a term begins only on logs from which its token was read back",
	"the bound is the majority's oldest evidence",
}

// TestTracesOfMutantsAreRefused removes rules from the code. The specification must not allow what the
// code then does.
func TestTracesOfMutantsAreRefused(t *testing.T) {
	judge.Jar(t)
	var table []mutation.Mutant
	for _, rule := range bySpecification {
		i := slices.IndexFunc(rules, func(m mutation.Mutant) bool { return m.Rule == rule })
		require.GreaterOrEqual(t, i, 0, rule)
		m := rules[i]
		m.Guard, m.Want, m.Seeds = "TestTracesAreAllowed/3_.*", `does not allow this.*\n\s*<<`, traceBatch
		table = append(table, m)
	}
	mutation.Run(t, table)
}
