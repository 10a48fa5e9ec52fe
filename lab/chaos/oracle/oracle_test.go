package oracle

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/chaos/store"
	"github.com/goneli/neli/lab/witness"
)

// An oracle that never objects proves nothing. These are forged records, in milliseconds, that it
// must reject, each beside similar ones that it must accept.

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// at is a sample that took a millisecond.
func at(n int) witness.Window { return witness.Window{Before: ms(n), After: ms(n + 1)} }

func run(mode int, answer int64, from, to int) witness.Run {
	return witness.Run{Neli: mode, Answer: answer, First: at(from), Last: at(to), Samples: int64(to - from + 1)}
}

func life(member string, runs ...witness.Run) history.Life {
	host, _, _ := strings.Cut(member, ".")
	return history.Life{Host: host, Member: member, Died: witness.Never, Runs: runs}
}

const (
	ex  = history.Exclusive
	non = history.NonExclusive
)

func rejects(t *testing.T, want string, faults []string) {
	t.Helper()
	got := strings.Join(faults, "\n")
	if want == "" {
		assert.Empty(t, got)
	} else {
		assert.Contains(t, got, want)
	}
}

func TestTerms(t *testing.T) {
	for _, c := range []struct {
		name  string
		lives []history.Life
		want  string // "" to accept
	}{
		{"a woken process that says so once", []history.Life{
			life("a", run(ex, 3, 0, 1000), run(ex, 3, 2000, 2000)), life("b", run(ex, 7, 1500, 3000))}, "two leaders"},
		{"a woken process that knows better", []history.Life{
			life("a", run(ex, 3, 0, 1000), run(ex, witness.No, 2000, 3000)), life("b", run(ex, 7, 1500, 3000))}, ""},
		{"one token of two incarnations", []history.Life{life("a.1", run(ex, 3, 0, 10)), life("a.2", run(ex, 3, 12, 20))}, "one token, two members"},
		{"the member's own token goes back", []history.Life{life("a", run(ex, 7, 0, 10), run(ex, 3, 12, 20))}, "no greater token"},
		{"other roles and the other mode are no concern", []history.Life{
			life("a", run(ex, 3, 0, 30)), life("b", run(non, witness.NoToken, 0, 30),
				witness.Run{Neli: ex, Role: 1, Answer: 7, First: at(0), Last: at(30)})}, ""},
	} {
		t.Run(c.name, func(t *testing.T) { rejects(t, c.want, witness.TermFaults(Terms(c.lives, 0))) })
	}
}

func write(member string, token, value int64, from, to int, outcome string) history.Op {
	op := history.Op{Member: member, Kind: history.Write, Token: token, Value: value, Invoked: ms(from), Returned: ms(to), Outcome: outcome}
	if outcome == history.Unknown {
		op.Returned = witness.Never
	}
	return op
}

func fencing(member string, token int64, from, to int) history.Op {
	return history.Op{Member: member, Kind: history.Fence, Token: token, Invoked: ms(from), Returned: ms(to), Outcome: history.Accepted}
}

func read(token, value int64, from, to int) history.Op {
	return history.Op{Member: "reader", Kind: history.Read, Token: token, Value: value, Invoked: ms(from), Returned: ms(to), Outcome: history.Accepted}
}

func entry(serial int64, member string, token, value int64, accepted bool) store.Entry {
	return store.Entry{Serial: serial, Member: member, Token: token, Value: value, Accepted: accepted, Stale: !accepted}
}

func TestWrites(t *testing.T) {
	first := write("a", 3, 1, 0, 1, history.Accepted)
	logged := entry(1, "a", 3, 1, true)
	for _, c := range []struct {
		name string
		ops  []history.Op
		log  []store.Entry
		want string
	}{
		{"in order", []history.Op{first, write("b", 7, 2, 2, 3, history.Accepted)}, []store.Entry{logged, entry(2, "b", 7, 2, true)}, ""},
		{"a stale one that is rejected", []history.Op{write("b", 7, 2, 0, 1, history.Accepted), write("a", 3, 1, 2, 3, history.Rejected)},
			[]store.Entry{entry(1, "b", 7, 2, true), entry(2, "a", 3, 1, false)}, ""},
		{"a token that falls", []history.Op{write("b", 7, 2, 0, 1, history.Accepted), write("a", 3, 1, 2, 3, history.Accepted)},
			[]store.Entry{entry(1, "b", 7, 2, true), entry(2, "a", 3, 1, true)}, "was accepted with token 3 after token 7"},
		{"a good one that is rejected", []history.Op{first, write("a", 3, 2, 2, 3, history.Rejected)},
			[]store.Entry{logged, entry(2, "a", 3, 2, false)}, "was rejected with token 3 after token 3"},
		{"an acknowledged one that is lost", []history.Op{first, write("a", 3, 2, 2, 3, history.Accepted)}, []store.Entry{logged}, "it is lost"},
		{"an unknown one that is not there", []history.Op{first, write("a", 3, 2, 2, 3, history.Unknown)}, []store.Entry{logged}, ""},
		{"an unknown one that is there", []history.Op{first, write("a", 3, 2, 2, 3, history.Unknown)}, []store.Entry{logged, entry(2, "a", 3, 2, true)}, ""},
		{"one that was not sent and is there", []history.Op{write("a", 3, 1, 0, 1, history.NotSent)}, []store.Entry{logged}, "it is in the log"},
		{"one of nobody", nil, []store.Entry{logged}, "nobody wrote it"},
		{"another verdict", []history.Op{write("a", 3, 1, 0, 1, history.Rejected)}, []store.Entry{logged}, "the log has accepted=true"},
		{"another token", []history.Op{write("a", 4, 1, 0, 1, history.Accepted)}, []store.Entry{logged}, "the log has"},
		{"twice", []history.Op{first}, []store.Entry{logged, entry(2, "a", 3, 1, true)}, "twice"},
		{"a token of two", []history.Op{first, write("b", 3, 2, 2, 3, history.Accepted)}, []store.Entry{logged, entry(2, "b", 3, 2, true)}, "token 3 belongs to a"},
	} {
		t.Run(c.name, func(t *testing.T) { rejects(t, c.want, WriteFaults(c.ops, c.log, nil)) })
	}
	rejects(t, "token 3 belongs to b", WriteFaults([]history.Op{first}, []store.Entry{logged}, Terms([]history.Life{life("b", run(ex, 3, 0, 9))}, 0)))
}

// Without the guard the same history has stale writes, and these are counted.
func TestStaleWritesAreCounted(t *testing.T) {
	c := CountWrites([]history.Op{write("b", 7, 2, 0, 1, history.Accepted), write("a", 3, 1, 2, 3, history.Rejected)},
		[]store.Entry{entry(1, "b", 7, 2, true), entry(2, "a", 3, 1, false)})
	assert.Equal(t, Writes{Accepted: 1, Rejected: 1, Stale: 1}, c)
}

func TestRegister(t *testing.T) {
	for _, c := range []struct {
		name string
		ops  []history.Op
		ok   bool
	}{
		{"reads what was written", []history.Op{write("a", 3, 1, 0, 1, history.Accepted), read(3, 1, 2, 3)}, true},
		{"reads what was overwritten", []history.Op{write("a", 3, 1, 0, 1, history.Accepted), write("a", 3, 2, 2, 3, history.Accepted), read(3, 1, 4, 5)}, false},
		{"reads either while both are under way", []history.Op{write("a", 3, 1, 0, 1, history.Accepted), write("a", 3, 2, 2, 9, history.Accepted), read(3, 1, 4, 5)}, true},
		{"goes back", []history.Op{write("a", 3, 1, 0, 1, history.Accepted), write("a", 3, 2, 2, 9, history.Accepted), read(3, 2, 3, 4), read(3, 1, 5, 6)}, false},
		{"accepts a lower token", []history.Op{write("b", 7, 1, 0, 1, history.Accepted), write("a", 3, 2, 2, 3, history.Accepted)}, false},
		{"rejects a lower token", []history.Op{write("b", 7, 1, 0, 1, history.Accepted), write("a", 3, 2, 2, 3, history.Rejected), read(7, 1, 4, 5)}, true},
		{"rejects a good one", []history.Op{write("a", 3, 1, 0, 1, history.Accepted), write("b", 7, 2, 2, 3, history.Rejected)}, false},
		{"loses an acknowledged one", []history.Op{write("a", 3, 1, 0, 1, history.Accepted), read(-1, 0, 2, 3)}, false},
		{"an unknown one took effect", []history.Op{write("a", 3, 1, 0, 1, history.Unknown), read(3, 1, 2, 3)}, true},
		{"an unknown one did not", []history.Op{write("a", 3, 1, 0, 1, history.Unknown), read(-1, 0, 2, 3)}, true},
		{"an unknown one did, late", []history.Op{write("a", 3, 1, 0, 1, history.Unknown), read(-1, 0, 2, 3), read(3, 1, 4, 5)}, true},
		{"an unknown one did, and did not", []history.Op{write("a", 3, 1, 0, 1, history.Unknown), read(3, 1, 2, 3), read(-1, 0, 4, 5)}, false},
		{"a claim keeps the former term out, before anything is written", []history.Op{write("a", 3, 1, 0, 1, history.Accepted), fencing("b", 7, 2, 3), write("a", 3, 2, 4, 5, history.Rejected), read(3, 1, 6, 7)}, true},
		{"a former term writes after a claim", []history.Op{write("a", 3, 1, 0, 1, history.Accepted), fencing("b", 7, 2, 3), write("a", 3, 2, 4, 5, history.Accepted)}, false},
		{"a former term's unknown write takes effect after a claim", []history.Op{fencing("b", 7, 2, 3), write("a", 3, 2, 4, 5, history.Unknown), read(3, 2, 6, 7)}, false},
		{"a former term is refused, and nobody has claimed", []history.Op{write("a", 3, 1, 0, 1, history.Rejected)}, false},
		{"one that was not sent has no effect", []history.Op{write("a", 3, 1, 0, 1, history.NotSent), read(3, 1, 2, 3)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			verdict, ok := Linearizable(c.ops, 0, time.Minute)
			assert.Equal(t, c.ok, ok, verdict)
		})
	}
}

// Writes of unknown outcome make the check expensive. It still finishes with the number of them that SIGKILL can leave
// behind in an hour.
func TestRegisterWithManyUnknown(t *testing.T) {
	var ops []history.Op
	var value int64
	for i := range 8000 {
		value++
		outcome := history.Accepted
		if i%100 == 99 {
			outcome = history.Unknown
		}
		token := int64(i / 500)
		ops = append(ops, write("a", token, value, 10*i, 10*i+3, outcome))
		if outcome == history.Accepted {
			ops = append(ops, read(token, value, 10*i+4, 10*i+6))
		}
	}
	verdict, ok := Linearizable(ops, 0, time.Minute)
	assert.True(t, ok, verdict)
}

// A write of unknown outcome counts as done if the log has it, and as not done if the log does not.
func TestSettled(t *testing.T) {
	there, lost := write("a", 3, 1, 0, 1, history.Unknown), write("a", 3, 2, 2, 3, history.Unknown)
	known := write("a", 3, 3, 4, 5, history.Accepted)
	assert.Equal(t, []history.Op{there, known}, Settled([]history.Op{there, lost, known}, []store.Entry{entry(1, "a", 3, 1, true)}))
}

// A check that ran out of time is not ok.
func TestUndecidedRegisterIsNotOK(t *testing.T) {
	var ops []history.Op
	for i := range 64 {
		ops = append(ops, write("a", 3, int64(i+1), 0, 1, history.Unknown))
	}
	ops = append(ops, read(3, 1000, 2, 3)) // a value that nobody wrote, so all orders have to be tried
	verdict, ok := Linearizable(ops, 0, ms(50))
	assert.False(t, ok)
	assert.Contains(t, verdict, "undecided")
}

// alive is a member that answers no until from, then yes until to, then no until the end of sampling.
func alive(name string, from, to int) history.Life {
	return life(name, run(non, witness.No, 0, from-1), run(non, witness.NoToken, from, to), run(non, witness.No, to+1, 30_000))
}

func dead(l history.Life, n int) history.Life {
	l.Died, l.Killed, l.Runs = ms(n), true, l.Runs[:2]
	return l
}

func fault(step, from, to int) history.Fault {
	return history.Fault{Step: step, Kind: "some fault", Span: witness.Span{From: ms(from), To: ms(to)}, Calm: true}
}

func TestCover(t *testing.T) {
	killed, broker, hasty := fault(1, 9_000, 9_500), fault(1, 9_000, 9_500), fault(1, 9_000, 9_500)
	killed.Crash, broker.Cluster, hasty.Calm = true, true, false
	pace := Pace{Timeout: ms(2000), Beat: ms(100)}
	early := fault(0, 7_000, 8_000) // at 9.5 s it may have had no evidence for 2 s
	early.Cluster = true
	for _, c := range []struct {
		name  string
		fault history.Fault
		lives []history.Life
		want  string
	}{
		{"one leads all the time", fault(1, 9_000, 9_500), []history.Life{alive("a", 50, 29_000)}, ""},
		{"they touch", fault(1, 9_000, 9_500), []history.Life{alive("a", 50, 10_000), alive("b", 10_001, 29_000)}, ""},
		{"a moment without", fault(1, 9_000, 9_500), []history.Life{alive("a", 50, 10_000), alive("b", 10_010, 29_000)}, "though its leader lived"},
		{"a moment without, brokers unwell", broker, []history.Life{alive("a", 50, 10_000), alive("b", 10_010, 29_000)}, ""},
		{"a moment without, not recovered yet", hasty, []history.Life{alive("a", 50, 10_000), alive("b", 10_010, 29_000)}, ""},
		{"a crash, in time", killed, []history.Life{dead(alive("a", 50, 9_000), 9_001), alive("b", 13_000, 29_000)}, ""},
		{"a crash, too long", killed, []history.Life{dead(alive("a", 50, 9_000), 9_001), alive("b", 15_000, 29_000)}, "longer than S + J + B"},
		{"it lapsed, of what an earlier fault of the brokers did", fault(2, 9_000, 9_500), []history.Life{
			alive("a", 50, 9_500), alive("b", 9_510, 29_000)}, ""},
		{"the same, and certain only later", fault(2, 9_000, 9_500), []history.Life{
			alive("a", 50, 9_500), life("b", run(non, witness.No, 0, 9_400), run(non, witness.No, 9_900, 9_990), run(non, witness.NoToken, 10_000, 29_000))}, ""},
		{"suspended: nothing is certain", fault(1, 9_000, 9_500), []history.Life{
			life("a", run(non, witness.NoToken, 0, 9_000), run(non, witness.NoToken, 12_000, 30_000)), alive("b", 29_000, 29_500)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := history.Record{Start: ms(100), End: ms(28_000), Roles: 1, Lives: c.lives, Faults: []history.Fault{fault(0, 200, 300), early, c.fault}}
			rejects(t, c.want, CoverFaults(r, 0, pace, ms(5000)))
		})
	}
}

func TestGaps(t *testing.T) {
	r := history.Record{Start: ms(100), End: ms(40_000), Roles: 1,
		Lives: []history.Life{
			life("a", run(ex, 3, 0, 10_000), run(non, witness.NoToken, 0, 10_000), run(non, witness.NoToken, 13_000, 41_000)),
			life("b", run(ex, 9, 12_000, 41_000)),
		},
		Faults: []history.Fault{fault(0, 5_000, 6_000), fault(1, 10_001, 11_000)},
	}
	r.Faults[0].Kind = "earlier"
	gaps := Gaps(r, ex, 0, Pace{Timeout: ms(5_000)}, ignore)
	require.Len(t, gaps, 1)
	assert.Equal(t, witness.Span{From: ms(10_000), To: ms(12_001)}, gaps[0].Span)
	assert.Equal(t, "some fault", gaps[0].Kind)
	assert.Empty(t, Gaps(r, non, 0, Pace{Timeout: ms(5_000)}, ignore), "suspended, and presuming")
	assert.Len(t, Gaps(r, non, 0, Pace{Timeout: ms(2_000)}, ignore), 1, "suspended for longer than it may presume")

}

// A gap is aside if the step's faults struck members, but not the one that led the role.
func TestGapsOfRolesThatWereNotStruck(t *testing.T) {
	r := history.Record{Start: ms(100), End: ms(40_000), Roles: 1,
		Lives: []history.Life{life("a.1", run(ex, 3, 0, 10_000)), life("b.1", run(ex, 9, 12_000, 41_000)), life("c.1")}}
	for name, c := range map[string]struct {
		targets [][]string // of each fault of the step
		aside   bool
	}{
		"its leader":                   {[][]string{{"a"}}, false},
		"another member":               {[][]string{{"b"}}, true},
		"others":                       {[][]string{{"b", "c"}}, true},
		"another, and its leader":      {[][]string{{"b"}, {"a"}}, false},
		"another, and a broker":        {[][]string{{"b"}, {"b1"}}, false},
		"a broker":                     {[][]string{{"b1"}}, false},
		"the link of another":          {[][]string{{"b", "b1"}}, false},
		"nobody that is known by name": {[][]string{{"store"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r.Faults = []history.Fault{fault(0, 5_000, 6_000)}
			r.Faults[0].Targets = []string{"a"}
			for _, targets := range c.targets {
				f := fault(1, 9_990, 11_000)
				f.Targets = targets
				r.Faults = append(r.Faults, f)
			}
			gaps := Gaps(r, ex, 0, Pace{}, ignore)
			require.Len(t, gaps, 1)
			assert.Equal(t, c.aside, gaps[0].Aside)
		})
	}
}

// Each kind of fault has a bound of its own: a gap as long as the bound passes, and a gap longer by a
// nanosecond is a violation.
func TestRecovered(t *testing.T) {
	b := Recovery{Takeover: ms(600), Handover: ms(400), BrokerLost: ms(2_500), Parted: ms(4_000), Repaired: ms(1_500),
		Presuming: ms(1_300), PresumingRepaired: ms(2_200)}
	for _, c := range []struct {
		name  string
		mode  int
		fault history.Fault
		whole time.Duration // 0: unbounded while it lasts
		after time.Duration
	}{
		{"member gone", ex, history.Fault{Gone: true, Sort: "stopped"}, ms(600), ms(600)},
		{"members restarted", ex, history.Fault{Sort: "restarted"}, ms(400), ms(600)},
		{"slow", ex, history.Fault{Sort: "slow"}, 0, ms(600)},
		{"broker stopped", ex, history.Fault{Cluster: true, Sort: "stopped"}, ms(2_500), ms(1_500)},
		{"broker cut off", ex, history.Fault{Cluster: true, Sort: "cut off"}, ms(2_500), ms(1_500)},
		{"brokers parted", ex, history.Fault{Cluster: true, Pair: true, Sort: "cut off"}, ms(4_000), ms(1_500)},
		{"brokers restarted", ex, history.Fault{Cluster: true, Sort: "restarted"}, 0, ms(1_500)},
		{"group begun anew", ex, history.Fault{Cluster: true, Sort: "begun anew"}, 0, ms(600)},
		{"presuming, member gone", non, history.Fault{Gone: true, Crash: true, Sort: "killed"}, 0, ms(1_300)},
		{"presuming, broker gone", non, history.Fault{Cluster: true, Sort: "killed"}, 0, ms(2_200)},
	} {
		// The gap begins with the fault, which lasts this long.
		judge := func(calm bool, length, lasts time.Duration) []string {
			f := c.fault
			f.Step, f.Calm, f.Span = 1, calm, witness.Span{From: ms(10_000), To: ms(10_000) + lasts}
			r := history.Record{End: ms(60_000), Faults: []history.Fault{fault(0, 1, 2), f}}
			return Recovered(r, []Gap{{Span: witness.Span{From: ms(10_000), To: ms(10_000) + length}, Mode: c.mode, Step: 1, Kind: "x"}}, b)
		}
		t.Run(c.name, func(t *testing.T) {
			long := ms(20_000)
			if c.whole == 0 {
				rejects(t, "", judge(true, long, long))
			} else {
				rejects(t, "", judge(true, c.whole, long))
				rejects(t, "longer than "+c.whole.String(), judge(true, c.whole+1, long))
			}
			rejects(t, "", judge(false, long, long))
			rejects(t, "", judge(false, long+c.after, long))
			rejects(t, "while nothing was disturbed, longer than "+c.after.String(), judge(false, long+c.after+1, long))
		})
	}
}

// The weakest promise counts among those for the faults of the gap's step and for faults that began later. Earlier
// faults do not count.
func TestRecoveredOfSeveralFaults(t *testing.T) {
	b := Recovery{Takeover: ms(600), Handover: ms(400), BrokerLost: ms(2_500)}
	gap := []Gap{{Span: witness.Span{From: ms(10_000), To: ms(12_000)}, Step: 1}}
	member := func(step, from int) history.Fault {
		f := fault(step, from, 15_000)
		f.Gone = true
		return f
	}
	broker := func(step, from int) history.Fault {
		f := fault(step, from, 15_000)
		f.Cluster, f.Sort = true, "killed"
		return f
	}
	for _, c := range []struct {
		name   string
		faults []history.Fault
		want   string
	}{
		{"a broker of the same step", []history.Fault{member(1, 9_999), broker(1, 11_000)}, ""},
		{"a broker of the next step", []history.Fault{member(1, 9_999), broker(2, 11_000)}, ""},
		{"a broker of the step before", []history.Fault{broker(0, 5_000), member(1, 9_999)}, "longer than 600ms"},
		{"a broker when it is over", []history.Fault{member(1, 9_999), broker(2, 12_001)}, "longer than 600ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rejects(t, c.want, Recovered(history.Record{End: ms(60_000), Faults: c.faults}, gap, b))
		})
	}
}

// A sentinel releases the roles of a dead process if their terms are old enough.
func TestRecoveredBesideASentinel(t *testing.T) {
	b := Recovery{Takeover: ms(600), Handover: ms(400), Died: ms(400), Elder: ms(1_000)}
	died := fault(1, 10_000, 15_000)
	died.Gone, died.Crash = true, true
	for _, c := range []struct {
		led    int
		length int
		want   string
	}{{999, 600, ""}, {1_000, 400, ""}, {1_000, 401, "longer than 400ms"}} {
		l := life("a", run(ex, 7, 9_999-c.led, 10_000)) // the first sample took a millisecond
		gap := Gap{Span: witness.Span{From: witness.Terms("a", l.Runs)[0].Proven().To}, Step: 1}
		gap.To = gap.From + ms(c.length)
		rejects(t, c.want, Recovered(history.Record{End: ms(60_000), Lives: []history.Life{l}, Faults: []history.Fault{died}}, []Gap{gap}, b))
	}
}

// A life that was not sampled enough is no evidence, whichever part is missing.
func TestSampling(t *testing.T) {
	full := func() history.Life {
		l := life("a", run(ex, witness.No, 0, 20_000), run(non, witness.No, 0, 20_000))
		l.Died = ms(20_500)
		return l
	}
	for _, c := range []struct {
		name string
		life history.Life
		want string
	}{
		{"all of it", full(), ""},
		{"it ended before it began", history.Life{Died: ms(5_000)}, ""},
		{"never", history.Life{Died: ms(20_000)}, "never sampled"},
		{"a twentieth is missing", life("a", run(ex, witness.No, 0, 10_000), run(ex, witness.No, 11_000, 20_000), run(non, witness.No, 0, 20_000)), ""},
		{"a seventh in between", life("a", run(ex, witness.No, 0, 10_000), run(ex, witness.No, 13_000, 20_000), run(non, witness.No, 0, 20_000)), "a, exclusive role 0: only 85 % of its life was sampled; of the missing 3.001s others were sampled for 2s, in [[10.000000, 13.001000] (3.001s)]"},
		{"a stall of a short life", life("a", run(ex, witness.No, 0, 1_000), run(ex, witness.No, 2_900, 5_000), run(non, witness.No, 0, 5_000)), ""},
		{"more of a short life", life("a", run(ex, witness.No, 0, 1_000), run(ex, witness.No, 3_100, 5_000), run(non, witness.No, 0, 5_000)), "a, exclusive role 0: only 58 %"},
		{"of the other mode", life("a", run(ex, witness.No, 0, 20_000), run(non, witness.No, 0, 10_000), run(non, witness.No, 13_000, 20_000)), "a, non-exclusive role 0: only 85 %"},
		{"suspended meanwhile", func() history.Life {
			l := life("a", run(ex, witness.No, 0, 10_000), run(ex, witness.No, 15_000, 20_000), run(non, witness.No, 0, 10_000), run(non, witness.No, 15_000, 20_000))
			l.Stops = []witness.Span{{From: ms(10_001), To: ms(15_000)}}
			return l
		}(), ""},
		{"the sampler ended at half of it", func() history.Life {
			l := full()
			l.Died = ms(40_000)
			return l
		}(), "only 51 %"},
		{"the sampler began at half of it", func() history.Life {
			l := full()
			l.Born = ms(-16_000)
			return l
		}(), "not sampled for 16s after its birth"},
		{"other roles do not make up for it", func() history.Life {
			l := full()
			l.Runs[0].Role = 1
			return l
		}(), "a, exclusive role 0: never sampled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rejects(t, c.want, unsampled(c.life, []history.Life{c.life, life("b", run(ex, witness.No, 0, 12_000))}, 1))
		})
	}
}

// A record of one term without faults passes as a whole, and an empty record does not.
func TestJudge(t *testing.T) {
	limits := Limits{Recovery: Recovery{Takeover: ms(1000), Handover: ms(1000), Presuming: ms(1000)}, Pace: Pace{Timeout: ms(1000)}, Crash: ms(1000), Register: time.Minute}
	r := history.Record{Start: ms(100), End: ms(9_000), Roles: 1,
		Lives: []history.Life{life("a", run(ex, 3, 0, 10_000), run(non, witness.NoToken, 0, 10_000))},
		Ops:   []history.Op{write("a", 3, 1, 200, 300, history.Accepted)},
		Log:   election(claim("a", 3)),
	}
	assert.Empty(t, Judge(r, []store.Entry{entry(1, "a", 3, 1, true)}, limits).Violations)
	rejects(t, "it is lost", Judge(r, nil, limits).Violations)
	bad := r
	bad.Log = election()
	rejects(t, "no such valid claim", Judge(bad, []store.Entry{entry(1, "a", 3, 1, true)}, limits).Violations)
	v := Judge(history.Record{Start: ms(100), End: ms(9_000), Roles: 1}, nil, limits).Violations
	rejects(t, "never led", v)
	rejects(t, "no write was ever accepted", v)
}
