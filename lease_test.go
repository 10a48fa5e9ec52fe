package neli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Behaviour of one lease as transcripts. Each line is a command and, behind the
// bar, what it did; TestLeaseSimulation searches where these only show.
//
//	at 30ms                          both clocks stand 30 ms behind the beginning
//	wall +30ms                       the wall clock is set forward
//	start 5                          a new incarnation reads on at 5; the nth is called an
//	5: claim by x read 4             offset 5 is read. Also beat, release, hello; token, seq; "me"
//	5: noise                         a record that plays no part
//	step [want] [drop] [hung]        decide; drop: give up what is held; hung: no sign of life
//	failed me 1                      the claim with seq 1 of this incarnation is reported as failed
//
// T is 100 ms, T′ 110 ms, beats fall on multiples of 20 ms.
const (
	scriptTerm  = 100 * time.Millisecond
	scriptWait  = 110 * time.Millisecond
	scriptEvery = 20 * time.Millisecond
)

var scriptBegin = instant{mono: 1000 * time.Second, wall: 5000 * time.Second}

type script struct {
	lease lease
	now   instant
}

func newScript() *script {
	s := &script{now: scriptBegin}
	n := 0
	s.lease.leaseRules = leaseRules{group: "g", name: "me", term: threshold{scriptTerm, true}, wait: scriptWait, every: scriptEvery,
		newID: func() string { n++; return fmt.Sprint("a", n) }}
	return s
}

// play runs a transcript and compares it with what really happened.
func play(t *testing.T, transcript string) {
	t.Helper()
	s := newScript()
	var want, got []string
	for line := range strings.Lines(transcript) {
		command, expected, _ := strings.Cut(line, "|")
		command = strings.Join(strings.Fields(command), " ")
		if command == "" {
			continue
		}
		line := func(outcome string) string {
			return fmt.Sprintf("%-40s | %s", command, strings.Join(strings.Fields(outcome), " "))
		}
		want, got = append(want, line(expected)), append(got, line(s.run(t, command)))
	}
	require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"))
}

func (s *script) run(t *testing.T, command string) string {
	t.Helper()
	word := strings.Fields(command)
	l := &s.lease
	switch {
	case word[0] == "at":
		d := parseDuration(t, word[1])
		s.now = instant{scriptBegin.mono + d, s.now.wall + scriptBegin.mono + d - s.now.mono}
		return ""
	case word[0] == "wall":
		s.now.wall += parseDuration(t, word[1])
		return ""
	case word[0] == "start":
		l.start(parseInt(t, word[1]), s.now)
	case word[0] == "failed":
		l.failed(s.member(word[1]), uint64(parseInt(t, word[2])), s.now)
	case word[0] == "step":
		in := intent{want: slices.Contains(word, "want"), keep: !slices.Contains(word, "drop"), alive: !slices.Contains(word, "hung")}
		r, ok := l.step(s.now, in)
		if !ok {
			return "nothing"
		}
		return fmt.Sprintf("sends %s%s read %d seq %d; %s", r.kind, ofToken(r.token), r.read, r.seq, s.state())
	default:
		return s.consume(t, word)
	}
	return s.state()
}

func (s *script) consume(t *testing.T, word []string) string {
	t.Helper()
	o := parseInt(t, strings.TrimSuffix(word[0], ":"))
	var c consumed
	if word[1] == "noise" {
		c = s.lease.skip(o, s.now)
	} else {
		r := record{kind: kind(word[1]), group: "g", token: noToken, read: -1, seq: 1 << 40}
		for i := 2; i+1 < len(word); i += 2 {
			switch word[i] {
			case "by":
				r.member = s.member(word[i+1])
				r.name = "name of " + r.member
			case "read":
				r.read = parseInt(t, word[i+1])
			case "token":
				r.token = parseInt(t, word[i+1])
			case "seq":
				r.seq = uint64(parseInt(t, word[i+1]))
			default:
				require.Fail(t, "unknown word", word[i])
			}
		}
		c = s.lease.consume(r, o, s.now)
	}
	if c.alarm {
		return "ALARM " + s.state()
	}
	return s.state()
}

func (s *script) member(name string) string {
	if name == "me" {
		return s.lease.me
	}
	return name
}

func ofToken(token int64) string {
	if token == noToken {
		return ""
	}
	return fmt.Sprint(" token ", token)
}

// state shows where the lease is: who holds it, the newest record that counts
// and the newest read, since when it is quiet; what is mine and how old its
// evidence is; the claim under way.
func (s *script) state() string {
	l := &s.lease
	var b strings.Builder
	switch l.token {
	case tokenUnknown:
		b.WriteString("unknown")
	case tokenNone:
		b.WriteString("free")
	default:
		fmt.Fprint(&b, "held by ", l.token)
	}
	fmt.Fprintf(&b, ", last %d read %d quiet %v", l.last, l.read, l.quiet.mono-scriptBegin.mono)
	switch {
	case l.mine != noToken && l.holds(s.now):
		fmt.Fprintf(&b, ", mine, V %v", l.v.mono-scriptBegin.mono)
	case l.mine != noToken:
		b.WriteString(", mine but lapsed")
	}
	if l.claiming != 0 {
		fmt.Fprint(&b, ", claiming ", l.claiming)
	}
	return b.String()
}

func parseInt(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	require.NoError(t, err)
	return n
}

func parseDuration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	require.NoError(t, err)
	return d
}

func TestLeaseLife(t *testing.T) {
	play(t, `
		start 0                          | unknown, last -1 read -1 quiet 0s
		at 105ms                         |
		step want                        | nothing
		at 110ms                         |
		step want                        | sends claim read -1 seq 1; unknown, last -1 read -1 quiet 0s, claiming 1
		step want                        | nothing
		at 113ms                         |
		0: claim by me read -1 seq 1     | held by 0, last 0 read 0 quiet 113ms, mine, V 110ms
		step want                        | nothing
		at 120ms                         |
		step want                        | sends beat token 0 read 0 seq 2; held by 0, last 0 read 0 quiet 113ms, mine, V 110ms
		step want                        | nothing
		at 130ms                         |
		1: beat by me token 0 read 0 seq 2 | held by 0, last 1 read 1 quiet 130ms, mine, V 120ms
		at 145ms                         |
		step drop                        | sends release token 0 read 1 seq 3; held by 0, last 1 read 1 quiet 130ms
		at 146ms                         |
		2: release by me token 0 read 1 seq 3 | free, last 2 read 2 quiet 146ms
		step want                        | sends claim read 2 seq 4; free, last 2 read 2 quiet 146ms, claiming 4
	`)
}

func TestLeaseClaimValidity(t *testing.T) {
	t.Run("sender has read the newest valid record", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			0: claim by x read -1            | held by 0, last 0 read 0 quiet 0s
			1: claim by y read 0             | held by 1, last 1 read 1 quiet 0s
		`)
	})
	t.Run("sender has not: the claim moves nothing, not even the silence", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			0: claim by x read -1            | held by 0, last 0 read 0 quiet 0s
			at 30ms                          |
			1: claim by y read -1            | held by 0, last 0 read 1 quiet 0s
			2: claim by z read 0             | held by 2, last 2 read 2 quiet 30ms
		`)
	})
	t.Run("what plays no part does not outdate a claim", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			0: claim by x read -1            | held by 0, last 0 read 0 quiet 0s
			1: noise                         | held by 0, last 0 read 1 quiet 0s
			2: hello by z                    | held by 0, last 0 read 2 quiet 0s
			3: claim by y read 0             | held by 3, last 3 read 3 quiet 0s
		`)
	})
	t.Run("beats and releases outdate claims", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			0: claim by x read -1            | held by 0, last 0 read 0 quiet 0s
			1: beat by x token 0 read 0      | held by 0, last 1 read 1 quiet 0s
			2: claim by y read 0             | held by 0, last 1 read 2 quiet 0s
			3: release by x token 0 read 1   | free, last 3 read 3 quiet 0s
			4: claim by y read 2             | free, last 3 read 4 quiet 0s
			5: claim by y read 3             | held by 5, last 5 read 5 quiet 0s
		`)
	})
	t.Run("a beat of the running term needs not to have read anything", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			0: claim by x read -1            | held by 0, last 0 read 0 quiet 0s
			1: beat by x token 0 read 0      | held by 0, last 1 read 1 quiet 0s
			at 20ms                          |
			2: beat by x token 0 read 0      | held by 0, last 2 read 2 quiet 20ms
		`)
	})
	t.Run("records of a term that is over move nothing", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			0: claim by x read -1            | held by 0, last 0 read 0 quiet 0s
			1: claim by y read 0             | held by 1, last 1 read 1 quiet 0s
			at 20ms                          |
			2: beat by x token 0 read 0      | held by 1, last 1 read 2 quiet 0s
			3: release by x token 0 read 0   | held by 1, last 1 read 3 quiet 0s
		`)
	})
	t.Run("a member's word on another's token is not its own term's", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			0: claim by x read -1            | held by 0, last 0 read 0 quiet 0s
			1: release by x token 0 read 0   | free, last 1 read 1 quiet 0s
			2: claim by x read 1             | held by 2, last 2 read 2 quiet 0s
			3: beat by x token 0 read 0      | held by 2, last 2 read 3 quiet 0s
		`)
	})
	t.Run("a duplicate of the own claim begins no second term", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			at 110ms                         |
			step want                        | sends claim read -1 seq 1; unknown, last -1 read -1 quiet 0s, claiming 1
			0: claim by me read -1 seq 1     | held by 0, last 0 read 0 quiet 110ms, mine, V 110ms
			1: claim by me read -1 seq 1     | held by 0, last 0 read 1 quiet 110ms, mine, V 110ms
		`)
	})
}

// While the state is unknown, a record that may be valid restarts the silence
// and is otherwise not believed; one that is valid beyond doubt tells the state.
func TestLeaseUnknownState(t *testing.T) {
	t.Run("doubtful records restart the wait and are not believed", func(t *testing.T) {
		for _, doubtful := range []string{"claim by x read 3", "beat by x token 2 read 3", "release by x token 2 read 3"} {
			play(t, `
				start 5                      | unknown, last 4 read 4 quiet 0s
				at 100ms                     |
				5: `+doubtful+`              | unknown, last 5 read 5 quiet 100ms
				at 209ms                     |
				step want                    | nothing
				at 210ms                     |
				step want                    | sends claim read 5 seq 1; unknown, last 5 read 5 quiet 100ms, claiming 1
			`)
		}
	})
	t.Run("certain records tell the state", func(t *testing.T) {
		for record, state := range map[string]string{
			"claim by x read 4":           "held by 5",
			"beat by x token 2 read 4":    "held by 2",
			"release by x token 2 read 4": "free",
		} {
			play(t, `
				start 5                      | unknown, last 4 read 4 quiet 0s
				at 30ms                      |
				5: `+record+`                | `+state+`, last 5 read 5 quiet 30ms
			`)
		}
	})
	t.Run("a foreign record is not doubtful", func(t *testing.T) {
		play(t, `
			start 5                          | unknown, last 4 read 4 quiet 0s
			at 100ms                         |
			5: noise                         | unknown, last 4 read 5 quiet 0s
			6: hello by x                    | unknown, last 4 read 6 quiet 0s
			at 110ms                         |
			step want                        | sends claim read 6 seq 1; unknown, last 4 read 6 quiet 0s, claiming 1
		`)
	})
	t.Run("a doubtful own claim is not taken up, nor released", func(t *testing.T) {
		play(t, `
			start 5                          | unknown, last 4 read 4 quiet 0s
			at 110ms                         |
			step want                        | sends claim read 4 seq 1; unknown, last 4 read 4 quiet 0s, claiming 1
			5: beat by x token 2 read 3      | unknown, last 5 read 5 quiet 110ms, claiming 1
			6: claim by me read 4 seq 1      | unknown, last 6 read 6 quiet 110ms
			step drop                        | nothing
			step want                        | nothing
		`)
	})
}

func TestLeaseFenced(t *testing.T) {
	t.Run("by a later claim, in log order", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			at 110ms                         |
			step want                        | sends claim read -1 seq 1; unknown, last -1 read -1 quiet 0s, claiming 1
			0: claim by me read -1 seq 1     | held by 0, last 0 read 0 quiet 110ms, mine, V 110ms
			at 120ms                         |
			step want                        | sends beat token 0 read 0 seq 2; held by 0, last 0 read 0 quiet 110ms, mine, V 110ms
			1: claim by x read 0             | held by 1, last 1 read 1 quiet 120ms
			2: beat by me token 0 read 0 seq 2 | held by 1, last 1 read 2 quiet 120ms
			at 140ms                         |
			step want                        | nothing
		`)
	})
	t.Run("not by a claim that is not valid", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			at 110ms                         |
			step want                        | sends claim read -1 seq 1; unknown, last -1 read -1 quiet 0s, claiming 1
			0: claim by me read -1 seq 1     | held by 0, last 0 read 0 quiet 110ms, mine, V 110ms
			1: claim by x read -1            | held by 0, last 0 read 1 quiet 110ms, mine, V 110ms
		`)
	})
	t.Run("by a release of its token, whoever sent it", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			at 110ms                         |
			step want                        | sends claim read -1 seq 1; unknown, last -1 read -1 quiet 0s, claiming 1
			0: claim by me read -1 seq 1     | held by 0, last 0 read 0 quiet 110ms, mine, V 110ms
			1: release by x token 0 read 0   | free, last 1 read 1 quiet 110ms
		`)
	})
}

func TestLeaseStartForgets(t *testing.T) {
	t.Run("the claim under way", func(t *testing.T) {
		// Were it remembered, nothing could be claimed until it is read back, and
		// in a recreated or shortened log it never is.
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			at 110ms                         |
			step want                        | sends claim read -1 seq 1; unknown, last -1 read -1 quiet 0s, claiming 1
			start 7                          | unknown, last 6 read 6 quiet 110ms
			at 219ms                         |
			step want                        | nothing
			at 220ms                         |
			step want                        | sends claim read 6 seq 2; unknown, last 6 read 6 quiet 110ms, claiming 2
		`)
	})
	t.Run("what was mine, and when it was proved", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			at 110ms                         |
			step want                        | sends claim read -1 seq 1; unknown, last -1 read -1 quiet 0s, claiming 1
			0: claim by me read -1 seq 1     | held by 0, last 0 read 0 quiet 110ms, mine, V 110ms
			at 120ms                         |
			start 1                          | unknown, last 0 read 0 quiet 120ms
			step want                        | nothing
			step drop                        | nothing
		`)
		s := newScript()
		s.run(t, "start 0")
		s.run(t, "at 110ms")
		s.run(t, "step want")
		s.run(t, "start 0")
		require.Empty(t, s.lease.sent, "the stamps of the former incarnation")
	})
	t.Run("its identity: an own record of before is a stranger's", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			at 110ms                         |
			step want                        | sends claim read -1 seq 1; unknown, last -1 read -1 quiet 0s, claiming 1
			start 0                          | unknown, last -1 read -1 quiet 110ms
			0: claim by a1 read -1 seq 1     | held by 0, last 0 read 0 quiet 110ms
			at 130ms                         |
			step want                        | nothing
			1: beat by a1 token 0 read 0 seq 2 | held by 0, last 1 read 1 quiet 130ms
		`)
	})
	t.Run("a released term read again is not taken up", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			at 110ms                         |
			step want                        | sends claim read -1 seq 1; unknown, last -1 read -1 quiet 0s, claiming 1
			0: claim by me read -1 seq 1     | held by 0, last 0 read 0 quiet 110ms, mine, V 110ms
			step drop                        | sends release token 0 read 0 seq 2; held by 0, last 0 read 0 quiet 110ms
			start 0                          | unknown, last -1 read -1 quiet 110ms
			0: claim by a1 read -1 seq 1     | held by 0, last 0 read 0 quiet 110ms
			step want                        | nothing
		`)
	})
	t.Run("but not its numbers, by which reports are told apart", func(t *testing.T) {
		s := newScript()
		s.run(t, "start 0")
		s.run(t, "at 110ms")
		s.run(t, "step want")
		before := s.lease.seq
		s.run(t, "start 0")
		require.Equal(t, before, s.lease.seq)
	})
}

// A log that went back starts the lease anew, whatever record tells: else a
// process waits for ever to be shown what it has seen.
func TestLeaseLogWentBack(t *testing.T) {
	const led = `
		start 0                          | unknown, last -1 read -1 quiet 0s
		0: claim by x read -1            | held by 0, last 0 read 0 quiet 0s
		1: release by x token 0 read 0   | free, last 1 read 1 quiet 0s
		2: noise                         | free, last 1 read 2 quiet 0s
		step want                        | sends claim read 2 seq 1; free, last 1 read 2 quiet 0s, claiming 1
		3: claim by me read 2 seq 1      | held by 3, last 3 read 3 quiet 0s, mine, V 0s
		at 10ms                          |
	`
	// Whoever started anew leads again after one silence.
	const elected = `
		at 119ms                         |
		step want                        | nothing
		at 120ms                         |
		step want                        | sends claim read %[1]d seq 2; unknown, last %[1]d read %[1]d quiet 10ms, claiming 2
		%[2]d: claim by me read %[1]d seq 2 | held by %[2]d, last %[2]d read %[2]d quiet 120ms, mine, V 120ms
	`
	for _, c := range []struct{ name, record string }{
		{"a record of ours", "claim by x read -1"},
		{"a beat of the own term", "beat by me token 0 read 0"},
		{"a hello", "hello by x"},
		{"a foreign or malformed record", "noise"},
	} {
		for _, o := range []int{0, 2, 3} {
			t.Run(fmt.Sprintf("%s at %d after 3", c.name, o), func(t *testing.T) {
				play(t, led+fmt.Sprintf("%d: %s | ALARM unknown, last %d read %d quiet 10ms", o, c.record, o, o)+
					fmt.Sprintf(elected, o, o+1))
			})
		}
	}
	for _, c := range []struct{ name, record string }{
		{"a claim that has read itself", "claim by x read 4"},
		{"a claim that has read what lies ahead", "claim by x read 900"},
		{"a beat that has read what lies ahead", "beat by x token 3 read 5"},
		{"a beat of a term that lies ahead", "beat by x token 9 read 3"},
		{"a beat of the term that it would be itself", "beat by x token 4 read 3"},
		{"a release of a term that lies ahead", "release by x token 9 read 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, led+"4: "+c.record+" | ALARM unknown, last 4 read 4 quiet 10ms"+fmt.Sprintf(elected, 4, 5))
		})
	}
	t.Run("a hello cannot have read anything", func(t *testing.T) {
		play(t, led+"4: hello by x read 900 token 900 | held by 3, last 3 read 4 quiet 0s, mine, V 0s")
	})
	t.Run("a gap is no way back", func(t *testing.T) {
		play(t, led+"9: beat by me token 3 read 3 | held by 3, last 9 read 9 quiet 10ms, mine, V 0s")
	})
}

func TestLeaseFailedReports(t *testing.T) {
	t.Run("a new claim after one beat interval", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			at 110ms                         |
			step want                        | sends claim read -1 seq 1; unknown, last -1 read -1 quiet 0s, claiming 1
			at 900ms                         |
			step want                        | nothing
			failed me 1                      | unknown, last -1 read -1 quiet 0s
			at 919ms                         |
			step want                        | nothing
			at 920ms                         |
			step want                        | sends claim read -1 seq 2; unknown, last -1 read -1 quiet 0s, claiming 2
		`)
	})
	t.Run("the record may appear all the same", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			at 110ms                         |
			step want                        | sends claim read -1 seq 1; unknown, last -1 read -1 quiet 0s, claiming 1
			failed me 1                      | unknown, last -1 read -1 quiet 0s
			at 140ms                         |
			step want                        | sends claim read -1 seq 2; unknown, last -1 read -1 quiet 0s, claiming 2
			0: claim by me read -1 seq 1     | held by 0, last 0 read 0 quiet 140ms, mine, V 110ms, claiming 2
			1: claim by me read -1 seq 2     | held by 0, last 0 read 1 quiet 140ms, mine, V 110ms
		`)
	})
	t.Run("of another claim, another incarnation, or none", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			failed me 0                      | unknown, last -1 read -1 quiet 0s
			at 110ms                         |
			step want                        | sends claim read -1 seq 1; unknown, last -1 read -1 quiet 0s, claiming 1
			failed me 2                      | unknown, last -1 read -1 quiet 0s, claiming 1
			failed a0 1                      | unknown, last -1 read -1 quiet 0s, claiming 1
			start 0                          | unknown, last -1 read -1 quiet 110ms
			at 220ms                         |
			step want                        | sends claim read -1 seq 2; unknown, last -1 read -1 quiet 110ms, claiming 2
			failed a1 2                      | unknown, last -1 read -1 quiet 110ms, claiming 2
			failed me 2                      | unknown, last -1 read -1 quiet 110ms
		`)
	})
	t.Run("a report that fails nothing costs no pause", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			at 110ms                         |
			failed me 0                      | unknown, last -1 read -1 quiet 0s
			failed a0 1                      | unknown, last -1 read -1 quiet 0s
			step want                        | sends claim read -1 seq 1; unknown, last -1 read -1 quiet 0s, claiming 1
		`)
	})
}

const leading = `
	start 0                          | unknown, last -1 read -1 quiet 0s
	0: noise                         | unknown, last -1 read 0 quiet 0s
	1: release by x token 0 read 0   | free, last 1 read 1 quiet 0s
	at 3ms                           |
	step want                        | sends claim read 1 seq 1; free, last 1 read 1 quiet 0s, claiming 1
	2: claim by me read 1 seq 1      | held by 2, last 2 read 2 quiet 3ms, mine, V 3ms
`

func TestLeaseLapse(t *testing.T) {
	t.Run("ends the term, whatever is wanted", func(t *testing.T) {
		play(t, leading+`
			at 102ms                         |
			step want hung                   | nothing
			at 103ms                         |
			step want hung                   | sends release token 2 read 2 seq 2; held by 2, last 2 read 2 quiet 3ms
			at 112ms                         |
			step want                        | nothing
			at 113ms                         |
			step want                        | sends claim read 2 seq 3; held by 2, last 2 read 2 quiet 3ms, claiming 3
		`)
	})
	t.Run("cannot be undone by an own beat that comes back late", func(t *testing.T) {
		play(t, leading+`
			at 90ms                          |
			step want                        | sends beat token 2 read 2 seq 2; held by 2, last 2 read 2 quiet 3ms, mine, V 3ms
			at 103ms                         |
			3: beat by me token 2 read 2 seq 2 | held by 2, last 3 read 3 quiet 103ms, mine but lapsed
			step want                        | sends release token 2 read 3 seq 3; held by 2, last 3 read 3 quiet 103ms
		`)
	})
	t.Run("comes by the wall clock too: the machine may have been suspended", func(t *testing.T) {
		play(t, leading+`
			wall +97ms                       |
			at 5ms                           |
			step want                        | nothing
			at 6ms                           |
			step want                        | sends release token 2 read 2 seq 2; held by 2, last 2 read 2 quiet 3ms
		`)
	})
	t.Run("a claimant is not hurried by the wall clock", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			0: claim by x read -1            | held by 0, last 0 read 0 quiet 0s
			wall +1h                         |
			at 109ms                         |
			step want                        | nothing
			at 110ms                         |
			step want                        | sends claim read 0 seq 1; held by 0, last 0 read 0 quiet 0s, claiming 1
		`)
	})
	t.Run("a wall clock set back makes nothing younger", func(t *testing.T) {
		play(t, leading+`
			wall -1h                         |
			at 102ms                         |
			step want hung                   | nothing
			at 103ms                         |
			step want hung                   | sends release token 2 read 2 seq 2; held by 2, last 2 read 2 quiet 3ms
		`)
	})
	t.Run("an own claim that comes back after T is released at once", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			at 110ms                         |
			step want                        | sends claim read -1 seq 1; unknown, last -1 read -1 quiet 0s, claiming 1
			at 210ms                         |
			0: claim by me read -1 seq 1     | held by 0, last 0 read 0 quiet 210ms, mine but lapsed
			step want                        | sends release token 0 read 0 seq 2; held by 0, last 0 read 0 quiet 210ms
		`)
	})
}

func TestLeaseRelease(t *testing.T) {
	t.Run("is final: a beat in flight does not revive it", func(t *testing.T) {
		play(t, leading+`
			at 25ms                          |
			step want                        | sends beat token 2 read 2 seq 2; held by 2, last 2 read 2 quiet 3ms, mine, V 3ms
			step drop                        | sends release token 2 read 2 seq 3; held by 2, last 2 read 2 quiet 3ms
			3: beat by me token 2 read 2 seq 2 | held by 2, last 3 read 3 quiet 25ms
			4: release by me token 2 read 2 seq 3 | free, last 4 read 4 quiet 25ms
		`)
	})
	t.Run("frees at once, and also the one who released", func(t *testing.T) {
		play(t, leading+`
			step drop                        | sends release token 2 read 2 seq 2; held by 2, last 2 read 2 quiet 3ms
			step want                        | nothing
			3: release by me token 2 read 2 seq 2 | free, last 3 read 3 quiet 3ms
			step want                        | sends claim read 3 seq 3; free, last 3 read 3 quiet 3ms, claiming 3
		`)
	})
	t.Run("of a term that was never mine is not sent", func(t *testing.T) {
		play(t, `
			start 0                          | unknown, last -1 read -1 quiet 0s
			0: claim by x read -1            | held by 0, last 0 read 0 quiet 0s
			step drop                        | nothing
		`)
	})
}

func TestLeaseBeatsFallOnTheGrid(t *testing.T) {
	play(t, leading+`
		at 19ms                          |
		step want                        | nothing
		at 20ms                          |
		step want                        | sends beat token 2 read 2 seq 2; held by 2, last 2 read 2 quiet 3ms, mine, V 3ms
		at 39ms                          |
		step want                        | nothing
		at 55ms                          |
		step want                        | sends beat token 2 read 2 seq 3; held by 2, last 2 read 2 quiet 3ms, mine, V 3ms
		at 59ms                          |
		step want                        | nothing
		at 60ms                          |
		step want hung                   | nothing
		step want                        | sends beat token 2 read 2 seq 4; held by 2, last 2 read 2 quiet 3ms, mine, V 3ms
		at 61ms                          |
		3: beat by me token 2 read 2 seq 3 | held by 2, last 3 read 3 quiet 61ms, mine, V 55ms
		4: beat by me token 2 read 2 seq 2 | held by 2, last 4 read 4 quiet 61ms, mine, V 55ms
	`)
}

func TestLeaseStampOf(t *testing.T) {
	s := newScript()
	s.run(t, "start 0")
	s.run(t, "at 110ms")
	s.run(t, "step want")
	require.Equal(t, s.now, s.lease.stampOf(1, s.now))

	unknown := s.lease.stampOf(2, s.now)
	require.False(t, s.lease.term.young(s.now, unknown), "an unknown number proves leadership")
	require.Positive(t, s.lease.stampOf(1, s.now).age(unknown), "an unknown number is newer than a known one")

	play(t, leading+`
		at 5ms                           |
		3: beat by me token 2 read 2 seq 77 | held by 2, last 3 read 3 quiet 5ms, mine, V 3ms
	`)
	play(t, `
		start 0                          | unknown, last -1 read -1 quiet 0s
		0: claim by me read -1 seq 77    | held by 0, last 0 read 0 quiet 0s, mine but lapsed
	`)
}

// Stamps are kept for T or until a later beat has been read back, and that of the
// claim under way for longer.
func TestLeaseForgetsStamps(t *testing.T) {
	s := newScript()
	s.run(t, "start 0")
	s.run(t, "at 110ms")
	s.run(t, "step want")
	s.run(t, "0: claim by me read -1 seq 1")
	beat := func(ms int) record {
		s.run(t, fmt.Sprintf("at %dms", ms))
		r, ok := s.lease.step(s.now, intent{want: true, keep: true, alive: true})
		require.True(t, ok)
		require.Equal(t, kindBeat, r.kind)
		return r
	}
	read := func(r record) { s.lease.consume(r, s.lease.read+1, s.now) }
	for ms := 120; ms < 1000; ms += 20 {
		read(beat(ms))
		require.Empty(t, s.lease.sent, "nothing is left that could move V")
	}
	// Three beats are under way, then all the time one.
	first, second := beat(1000), beat(1020)
	read(second)
	require.Empty(t, s.lease.sent, "what was sent before cannot move V")
	v := s.lease.v
	read(first)
	require.Equal(t, v, s.lease.v)
	under := beat(1040)
	for ms := 1060; ms < 5000; ms += 20 {
		r := beat(ms)
		read(under)
		require.Equal(t, []uint64{r.seq}, seqs(s.lease.sent))
		require.Equal(t, scriptEvery, s.now.age(s.lease.v))
		under = r
	}
	read(under)

	// Nothing is read back: what is older than T goes.
	for ms := 5000; ms < 5080; ms += 20 {
		beat(ms)
	}
	require.Len(t, s.lease.sent, 4)
	s.lease.forget(s.now.add(scriptTerm))
	require.Len(t, s.lease.sent, 1)

	s.run(t, "step drop")
	s.run(t, fmt.Sprintf("%d: release by me token 0 read %d seq 9999", s.lease.read+1, s.lease.read))
	require.Equal(t, tokenNone, s.lease.token)
	s.run(t, "step want")
	require.NotZero(t, s.lease.claiming)
	claimed := s.now
	s.run(t, "at 60s")
	s.lease.forget(s.now)
	require.Equal(t, claimed, s.lease.stampOf(s.lease.claiming, s.now))
}

func seqs(sent []sent) []uint64 {
	var out []uint64
	for _, s := range sent {
		out = append(out, s.seq)
	}
	return out
}

func TestLeasePreference(t *testing.T) {
	s := newScript()
	s.run(t, "start 0")
	s.run(t, "0: noise")
	s.run(t, "1: release by x token 0 read 0")
	in := intent{want: true, keep: true, alive: true, delay: 7 * time.Millisecond}
	s.run(t, "at 6ms")
	_, ok := s.lease.step(s.now, in)
	require.False(t, ok)
	s.run(t, "at 7ms")
	r, ok := s.lease.step(s.now, in)
	require.True(t, ok)
	require.Equal(t, kindClaim, r.kind)
}

// silence is T′: whatever the two clocks do within ρ, T′ on the claimant's clock
// is longer in true time than T on the holder's.
func TestSilence(t *testing.T) {
	for _, c := range []struct {
		t     time.Duration
		drift float64
		want  time.Duration
	}{
		{5 * time.Second, 0, 5*time.Second + time.Millisecond},
		{5 * time.Second, 0.0005, 5_006_002_501 * time.Nanosecond},
		{time.Second, 0.2, 1501 * time.Millisecond},
		{24 * time.Hour, 0.2, 36*time.Hour + time.Millisecond},
	} {
		require.InDelta(t, c.want, silence(c.t, c.drift), 10, "T %v ρ %v", c.t, c.drift)
	}
	rapid.Check(t, func(t *rapid.T) {
		term := time.Duration(rapid.Int64Range(int64(minTimeout), int64(maxDuration)).Draw(t, "T"))
		drift := rapid.Float64Range(0, maxDrift).Draw(t, "rho")
		claimant := rapid.Float64Range(1-drift, 1+drift).Draw(t, "claimant's rate")
		passed := float64(silence(term, drift)) / claimant
		holder := float64(term) / (1 - drift) // the longest that T can be on the holder's clock
		if passed <= holder {
			t.Fatalf("%v of silence pass in %v, a lease of %v lasts for %v", silence(term, drift),
				time.Duration(passed), term, time.Duration(holder))
		}
		if s := silence(term, drift); float64(s) > 1.6*float64(term) {
			t.Fatalf("%v of silence are too many for a lease of %v", s, term)
		}
	})
}

func TestLeaseWake(t *testing.T) {
	for _, c := range []struct {
		name, script string
		in           intent
		want         time.Duration // negative: never
	}{
		{"nothing is wanted", "", intent{}, -1},
		{"unknown: after the silence", "", intent{want: true, delay: 3 * time.Millisecond}, 113 * time.Millisecond},
		{"free: at once", "0: noise|1: release by x token 0 read 0", intent{want: true, delay: 3 * time.Millisecond}, 3 * time.Millisecond},
		{"held by another: after the silence", "at 5ms|0: claim by x read -1", intent{want: true}, 115 * time.Millisecond},
		{"a claim is under way", "at 110ms|step want", intent{want: true}, -1},
		{"a claim has failed", "at 150ms|step want|failed me 1", intent{want: true}, 170 * time.Millisecond},
		{"leads: the next beat", "at 113ms|step want|0: claim by me read -1 seq 1", intent{want: true, alive: true}, 120 * time.Millisecond},
		{"leads and is not wanted any more: beats go on", "at 113ms|step want|0: claim by me read -1 seq 1", intent{alive: true}, 120 * time.Millisecond},
		{"leads and hangs: the lapse", "at 113ms|step want|0: claim by me read -1 seq 1", intent{want: true}, 213 * time.Millisecond},
		{"beats are not read back: the lapse, if it comes first", "at 113ms|step want|0: claim by me read -1 seq 1|at 205ms|step want",
			intent{want: true, alive: true}, 213 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript()
			s.run(t, "start 0")
			for _, command := range strings.Split(c.script, "|") {
				if command != "" {
					s.run(t, command)
				}
			}
			at, ok := s.lease.wake(c.in)
			require.Equal(t, c.want >= 0, ok)
			if ok {
				require.Equal(t, c.want, at-scriptBegin.mono)
			}
		})
	}
}

// wake never lies: before it step has nothing to do, at it step has.
func TestLeaseWakeNeverLies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, now := randomLease(t)
		in := intent{keep: true, want: rapid.Bool().Draw(t, "want"), alive: rapid.Bool().Draw(t, "alive"),
			delay: time.Duration(rapid.Int64Range(0, int64(scriptTerm)).Draw(t, "delay"))}
		does := func(at time.Duration) bool {
			copied := *l
			copied.sent = slices.Clone(l.sent)
			_, ok := copied.step(now.add(at-now.mono), in)
			return ok
		}
		at, ok := l.wake(in)
		switch {
		case !ok:
			later := now.mono + time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "later"))
			if does(later) {
				t.Fatalf("wake says never, and %v later step does something", later-now.mono)
			}
		case at <= now.mono:
			if !does(now.mono) {
				t.Fatal("wake says now, and step does nothing")
			}
		default:
			before := time.Duration(rapid.Int64Range(int64(now.mono), int64(at)-1).Draw(t, "before"))
			if does(before) || does(at-1) {
				t.Fatalf("wake says in %v, and step does something before", at-now.mono)
			}
			if !does(at) {
				t.Fatalf("wake says in %v, and step does nothing then", at-now.mono)
			}
		}
	})
}

// randomLease is a lease after a random history.
func randomLease(t *rapid.T) (*lease, instant) {
	s := newScript()
	l := &s.lease
	l.start(0, s.now)
	if rapid.Bool().Draw(t, "begins free") {
		l.skip(0, s.now)
		l.consume(record{kind: kindRelease, member: "x", read: 0, seq: 2}, 1, s.now)
	}
	for range rapid.IntRange(0, 12).Draw(t, "history") {
		s.now = s.now.add(time.Duration(rapid.Int64Range(0, int64(scriptTerm)).Draw(t, "pause")))
		o := l.read + rapid.Int64Range(1, 3).Draw(t, "gap")
		switch rapid.IntRange(0, 5).Draw(t, "what") {
		case 0:
			l.start(o, s.now)
		case 1:
			l.skip(o, s.now)
		case 2:
			l.consume(record{kind: kindClaim, member: "x", token: noToken, read: l.last, seq: 1}, o, s.now)
		case 3:
			l.consume(record{kind: kindRelease, member: "x", token: max(l.token, 0), read: min(l.last, o-1), seq: 2}, o, s.now)
		case 4:
			l.failed(l.me, l.claiming, s.now)
		default:
			r, ok := l.step(s.now, intent{want: true, keep: rapid.Bool().Draw(t, "keep"), alive: true})
			if ok && rapid.Bool().Draw(t, "arrives") {
				l.consume(r, o, s.now)
			}
		}
	}
	return l, s.now
}
