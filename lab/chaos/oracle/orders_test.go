package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/witness"
)

// Forged records of the orders that members were given, and of what they did.

var will = Will{Timeout: ms(2_000), Drain: ms(10_000), Wait: ms(4_000), Check: ms(1_000), Hang: ms(5_000), Away: ms(10_000), Slack: ms(2_000)}

func span(from, to int) witness.Span { return witness.Span{From: ms(from), To: ms(to)} }

func claim(member string, offset int64, at int) history.Claim {
	return history.Claim{Member: member, Offset: offset, At: ms(at)}
}

func election(cs ...history.Claim) history.ElectionLog {
	return history.ElectionLog{Claims: cs, From: []int64{0}}
}

func TestClaims(t *testing.T) {
	lives := []history.Life{life("a.1", run(ex, 3, 0, 10))}
	deleted := election(claim("b.1", 17, 20))
	deleted.From[0] = 4
	elsewhere := claim("a.1", 3, 0)
	elsewhere.Role = 1
	for _, c := range []struct {
		name string
		log  history.ElectionLog
		want string
	}{
		{"its own", election(claim("a.1", 3, 0), claim("b.1", 17, 20)), ""},
		{"of another", election(claim("b.1", 3, 0)), "a claim of b.1"},
		{"of another incarnation", election(claim("a.2", 3, 0)), "a claim of a.2"},
		{"of another role", election(elsewhere), "no such claim"},
		{"none", election(), "no such claim"},
		{"deleted", deleted, ""},
	} {
		t.Run(c.name, func(t *testing.T) { rejects(t, c.want, ClaimFaults(c.log, Terms(lives, 0))) })
	}
}

func transfer(from, to int, outcome string) history.Order {
	return history.Order{Member: "a.1", Kind: history.Transfer, To: "b.1", Token: 3, Invoked: ms(from), Returned: ms(to), Outcome: outcome}
}

func TestTransfers(t *testing.T) {
	a, b := life("a.1", run(ex, 3, 0, 1_000)), life("b.1", run(ex, 17, 1_100, 9_000))
	idle, stopped, dead := life("b.1", run(ex, witness.No, 0, 9_000)), life("b.1"), life("b.1")
	stopped.Stops = []witness.Span{span(1_050, 5_000)}
	dead.Died = ms(1_050)
	before := life("b.1", run(ex, 1, -900, -1))
	log := election(claim("b.1", 1, -900), claim("a.1", 3, 0), claim("b.1", 17, 1_100))
	own := history.Fault{Targets: []string{"a", "b"}, Span: span(900, 1_200), Order: true}
	cut := func(host string) history.Fault {
		return history.Fault{Targets: []string{host}, Span: span(900, 30_000)}
	}
	brokers := history.Fault{Targets: []string{"b1"}, Span: span(900, 30_000), Cluster: true}
	unheard := transfer(1_000, 0, history.Unheard)
	unheard.Returned = witness.Never
	for _, c := range []struct {
		name   string
		order  history.Order
		target history.Life
		log    history.ElectionLog
		other  history.Fault
		want   string
	}{
		{"it led", transfer(1_000, 1_150, history.Done), b, log, own, ""},
		{"it had led before only", transfer(1_000, 1_150, history.Done), before, log, own, "the member did not lead"},
		{"it did not lead", transfer(1_000, 1_150, history.Done), idle, log, own, "the member did not lead"},
		{"it claimed, and was suspended", transfer(1_000, 1_150, history.Done), stopped, log, own, ""},
		{"it claimed, and was killed", transfer(1_000, 1_150, history.Done), dead, log, own, ""},
		{"it claimed, and was cut off", transfer(1_000, 1_150, history.Done), idle, log, cut("b"), ""},
		{"it claimed, and another was cut off", transfer(1_000, 1_150, history.Done), idle, log, cut("c"), "the member did not lead"},
		{"it was killed, and never claimed", transfer(1_000, 1_150, history.Done), dead, election(claim("b.1", 1, -900), claim("c.1", 17, 1_100)), own, "no such claim"},
		{"another was first, as it said", transfer(1_000, 1_150, history.NotTransferred), idle, log, own, ""},
		{"an error that should not be", transfer(1_000, 1_150, "error: broken"), b, log, own, "returned error: broken"},
		{"nobody answered, as it said", transfer(1_000, 2_000, history.NoAnswer), idle, log, own, ""},
		{"it took too long", transfer(1_000, 21_001, history.NotTransferred), b, log, own, "took more than 20s"},
		{"it took long", transfer(1_000, 20_999, history.NotTransferred), b, log, own, ""},
		{"it took too long, cut off", transfer(1_000, 29_000, history.NotTransferred), b, log, cut("a"), ""},
		{"it took too long, its target cut off", transfer(1_000, 29_000, history.NotTransferred), b, log, cut("b"), "took more than 20s"},
		{"it took too long, brokers unwell", transfer(1_000, 29_000, history.NotTransferred), b, log, brokers, ""},
		{"it did not return", unheard, b, log, own, "took more than 20s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lives := []history.Life{a, c.target}
			r := history.Record{Roles: 1, Lives: lives, Orders: []history.Order{c.order}, Log: c.log, Faults: []history.Fault{c.other}}
			rejects(t, c.want, OrderFaults(r, Terms(lives, 0), will))
		})
	}
}

func TestStepDowns(t *testing.T) {
	const from, returned, back = 1_000, 1_500, 11_000
	for _, c := range []struct {
		name string
		runs []witness.Run
		log  []history.Claim
		want string
	}{
		{"away", []witness.Run{run(ex, 3, 0, 1_400)}, nil, ""},
		{"it gives up while the call lasts", []witness.Run{run(ex, 3, 0, returned-1)}, nil, ""},
		{"it leads on", []witness.Run{run(ex, 3, 0, returned+10)}, nil, "role 0 was led"},
		{"it leads again too soon", []witness.Run{run(ex, 3, 0, 1_400), run(ex, 17, 9_000, 20_000)}, nil, "role 0 was led"},
		{"a single sample too soon", []witness.Run{run(ex, 3, 0, 1_400), run(ex, 17, 9_000, 9_000)}, nil, "role 0 was led"},
		{"it leads again", []witness.Run{run(ex, 3, 0, 1_400), run(ex, 17, back+1, 20_000)}, nil, ""},
		{"it claims too soon", nil, []history.Claim{claim("a.1", 17, back-200)}, "role 0 was claimed"},
		{"it claims again", nil, []history.Claim{claim("a.1", 3, 0), claim("a.1", 17, back)}, ""},
		{"another claims", nil, []history.Claim{claim("b.1", 17, 2_000)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			lives := []history.Life{life("a.1", c.runs...)}
			o := history.Order{Member: "a.1", Kind: history.StepDown, Invoked: ms(from), Returned: ms(returned), Outcome: history.Done}
			r := history.Record{Roles: 1, Lives: lives, Orders: []history.Order{o}, Log: election(c.log...)}
			rejects(t, c.want, OrderFaults(r, Terms(lives, 0), will))
		})
	}
	// The time away counts from the return of StepDown, so it is whole even after a long call.
	for _, c := range []struct {
		name string
		at   int
		stop []witness.Span
		want string
	}{
		{"it claims too soon after a long call", 16_800, nil, "role 0 was claimed"},
		{"it claims again after a long call", 17_000, nil, ""},
		{"it was suspended, perhaps before it noted the return", 12_000, []witness.Span{span(1_200, 8_900)}, ""},
		{"it was suspended after the return", 16_800, []witness.Span{span(9_100, 9_200)}, "role 0 was claimed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := life("a.1")
			l.Stops = c.stop
			o := history.Order{Member: "a.1", Kind: history.StepDown, Invoked: ms(from), Returned: ms(9_000), Outcome: history.Done}
			r := history.Record{Roles: 1, Lives: []history.Life{l}, Orders: []history.Order{o}, Log: election(claim("a.1", 17, c.at))}
			rejects(t, c.want, OrderFaults(r, nil, will))
		})
	}
	rejects(t, "took more than 16s", OrderFaults(history.Record{Roles: 1, Lives: []history.Life{life("a.1")}, Orders: []history.Order{
		{Member: "a.1", Kind: history.StepDown, Invoked: ms(from), Returned: ms(20_000), Outcome: history.Closed}}}, nil, will))
}

func TestHealth(t *testing.T) {
	fails, hangs := history.Ail{Span: span(10_000, 60_000)}, history.Ail{Span: span(10_000, 60_000), Hangs: true}
	woken := witness.Span{From: ms(20_000), To: ms(30_000)}
	for _, c := range []struct {
		name string
		ail  history.Ail
		runs []witness.Run
		log  []history.Claim
		stop witness.Span
		want string
	}{
		{"it gives up", fails, []witness.Run{run(ex, 3, 0, 28_000)}, nil, witness.Span{}, ""},
		{"it leads on", fails, []witness.Run{run(ex, 3, 0, 30_000)}, nil, witness.Span{}, "led role 0"},
		{"it leads on, the check hanging", hangs, []witness.Run{run(ex, 3, 0, 33_000)}, nil, witness.Span{}, ""},
		{"it leads on, the check hanging for long", hangs, []witness.Run{run(ex, 3, 0, 35_000)}, nil, witness.Span{}, "led role 0"},
		{"it leads when it is well again", fails, []witness.Run{run(ex, 3, 60_001, 70_000)}, nil, witness.Span{}, ""},
		{"it was suspended", fails, []witness.Run{run(ex, 3, 0, 48_000)}, nil, woken, ""},
		{"it was suspended, and leads on", fails, []witness.Run{run(ex, 3, 0, 50_000)}, nil, woken, "led role 0"},
		{"another leads", history.Ail{}, []witness.Run{run(ex, 3, 0, 60_000)}, nil, witness.Span{}, ""},
		{"it claims before it can know", fails, nil, []history.Claim{claim("a.1", 3, 12_900)}, witness.Span{}, ""},
		{"it claims", fails, nil, []history.Claim{claim("a.1", 3, 13_200)}, witness.Span{}, "role 0 was claimed"},
		{"it claims, the check hanging", hangs, nil, []history.Claim{claim("a.1", 3, 17_900)}, witness.Span{}, ""},
		{"it claims, the check hanging for long", hangs, nil, []history.Claim{claim("a.1", 3, 18_200)}, witness.Span{}, "role 0 was claimed"},
		{"it claims when it wakes", fails, nil, []history.Claim{claim("a.1", 3, 30_100)}, woken, ""},
		{"it claims after it has woken", fails, nil, []history.Claim{claim("a.1", 3, 33_200)}, woken, "role 0 was claimed"},
		{"it claims when it is well again", fails, nil, []history.Claim{claim("a.1", 3, 60_100)}, witness.Span{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := life("a.1", c.runs...)
			l.Ails = []history.Ail{c.ail}
			if c.stop != (witness.Span{}) {
				l.Stops = []witness.Span{c.stop}
			}
			r := history.Record{Roles: 1, Lives: []history.Life{l}, Log: election(c.log...)}
			rejects(t, c.want, HealthFaults(r, Terms(r.Lives, 0), will))
		})
	}
}

func TestShared(t *testing.T) {
	hosts := []string{"a", "b", "c", "d"}
	alike := func(string, int) int { return 0 }
	ab := func(host string, _ int) int { return map[string]int{"a": 1, "b": 1}[host] }
	each := func(host string, role int) int { return map[bool]int{true: 5}[hosts[role] == host] }
	for _, c := range []struct {
		name    string
		wanted  func(string, int) int
		leaders []string
		want    bool
	}{
		{"one each", alike, []string{"d", "a", "b"}, true},
		{"two of one", alike, []string{"a", "a", "b"}, false},
		{"nobody", alike, []string{"a", "", "b"}, false},
		{"among the preferred", ab, []string{"a", "b", "a"}, true},
		{"all of one of the preferred", ab, []string{"a", "a", "a"}, false},
		{"one not preferred", ab, []string{"a", "b", "c"}, false},
		{"each where it is wanted", each, []string{"a", "b", "c", "d"}, true},
		{"not where it is wanted", each, []string{"b", "a", "c", "d"}, false},
	} {
		assert.Equal(t, c.want, Shared(c.leaders, hosts, c.wanted), c.name)
	}
}
