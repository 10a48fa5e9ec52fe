package history

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/lease"
)

const testT = 5 * time.Second

var (
	testCodec = lease.Codec{Group: "g", Log: "id"}
	testBegan = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// said is a record at a time in seconds.
type said struct {
	at float64
	r  lease.Record
}

func record(kind lease.Kind, process string, read int64) lease.Record {
	r := lease.Record{Kind: kind, Session: lease.Session{Process: process, N: 1}, Name: "host " + process, Read: read, Seq: 1, Longest: testT}
	if kind == lease.Beat || kind == lease.Claim {
		r.T = testT
	}
	if kind == lease.Hello {
		r.Hello = &lease.Announcement{Roles: 2}
	}
	return r
}

func claim(process string, read int64, roles ...int32) lease.Record {
	r := record(lease.Claim, process, read)
	r.Roles = roles
	return r
}

func release(process string, read, token int64, roles ...int32) lease.Record {
	r := record(lease.Release, process, read)
	r.Ended = []lease.Grant{{Token: token, Roles: roles}}
	return r
}

// story has a first leader that falls silent, a second one that waits and later hands role 0 over, and a third one.
func story() []said {
	first := claim("a", -1, 0, 1)
	first.Fresh, first.Longest = true, lease.Unsaid
	over := release("b", 6, 5, 0)
	over.To = "c"
	return []said{
		{0, first}, // 0
		{1, record(lease.Beat, "a", 0)},
		{1.5, record(lease.Hello, "b", 1)},
		{2, record(lease.Beat, "a", 2)},
		{2.1, record(lease.Hello, "c", 3)},
		{8, claim("b", 4, 0, 1)}, // 5
		{9, record(lease.Beat, "b", 5)},
		{9.5, over},
		{9.6, claim("c", 7, 0)}, // 8
		{10, record(lease.Beat, "c", 8)},
	}
}

func entries(s []said) []Entry {
	var out []Entry
	for o, x := range s {
		out = append(out, Entry{Offset: int64(o), Time: testBegan.Add(time.Duration(x.at * 1e9)), Value: testCodec.Encode(&x.r)})
	}
	return out
}

func read(t *testing.T, start int64, es []Entry) (*History, Result) {
	t.Helper()
	h, err := New(Log{Group: "g", Topic: "g.neli", TopicID: "id", Starts: []int64{start}, Ends: []int64{max(start, int64(len(es)))}})
	require.NoError(t, err)
	for _, e := range es {
		if e.Offset >= start {
			require.NoError(t, h.Add(e))
		}
	}
	return h, h.Result()
}

func TestTermsAndTheirEnds(t *testing.T) {
	_, r := read(t, 0, entries(story()))
	require.Empty(t, r.Faults)
	require.Empty(t, r.Unproven)
	require.Equal(t, [2]int{1, 1}, [2]int{r.Waits, r.Shown})
	var told []string
	for _, x := range r.Terms {
		told = append(told, fmt.Sprintf("%d %s %d: %.1f to %.1f %s %s", x.Role, x.Name, x.Token, x.From.Sub(testBegan).Seconds(), max(0, x.Until.Sub(testBegan)).Seconds(), x.End, x.To))
	}
	require.Equal(t, []string{
		"0 host a 0: 0.0 to 6.5 outlived ",
		"0 host b 5: 8.0 to 9.5 handed over c",
		"0 host c 8: 9.6 to 0.0 leads ",
		"1 host a 0: 0.0 to 6.5 outlived ",
		"1 host b 5: 8.0 to 0.0 leads ",
	}, told)
}

func TestWhyATermEnded(t *testing.T) {
	for want, change := range map[string]func(*said){
		HandedOver:  func(*said) {},
		Released:    func(s *said) { s.r.To = "" },
		Moved:       func(s *said) { s.r.Moved = true },
		Transferred: func(s *said) { s.r.Pinned = true },
		Lapsed:      func(s *said) { s.r.To, s.at = "", 14 },
		Died:        func(s *said) { s.r.Seq = 1 << 53 },
	} {
		s := story()[:8]
		change(&s[7])
		_, r := read(t, 0, entries(s))
		require.Empty(t, r.Faults, want)
		require.Equal(t, want, r.Terms[1].End)
	}
}

// TestBrokenLogs breaks one rule at a time. The fault names both records.
func TestBrokenLogs(t *testing.T) {
	snapshot := record(lease.Snapshot, "d", 6)
	snapshot.State = &lease.State{Parts: 1, Hash: 77, Newer: -1}
	for _, c := range []struct {
		name, rule string
		records    [2]int64
		change     func([]Entry) []Entry
	}{
		{"claim before its wait, by time", Wait, [2]int64{5, 3}, func(es []Entry) []Entry {
			es[5].Time = testBegan.Add(3 * time.Second)
			return es
		}},
		{"claim before what it has read", Order, [2]int64{3, 2}, func(es []Entry) []Entry {
			es[3].Value = es[5].Value
			return es[:4]
		}},
		{"offset that goes back", Order, [2]int64{4, 9}, func(es []Entry) []Entry { return append(es, es[4]) }},
		{"leader without a valid claim", Fold, [2]int64{6, 5}, func(es []Entry) []Entry {
			r := claim("b", 1, 0, 1) // it has not read a's Beat
			es[5].Value = testCodec.Encode(&r)
			return es[:7]
		}},
		{"leader without any claim", Fold, [2]int64{6, -1}, func(es []Entry) []Entry {
			r := record(lease.Beat, "x", 5)
			es[6].Value = testCodec.Encode(&r)
			return es[:7]
		}},
		{"leader that has read its end", Fold, [2]int64{6, 5}, func(es []Entry) []Entry {
			r := record(lease.Beat, "a", 5)
			es[6].Value = testCodec.Encode(&r)
			return es[:7]
		}},
		{"snapshot of another fold", Fold, [2]int64{9, 6}, func(es []Entry) []Entry {
			es[9].Value = testCodec.Encode(&snapshot)
			return es
		}},
		{"release of what was never held", Fold, [2]int64{7, 4}, func(es []Entry) []Entry {
			r := release("b", 6, 4, 0)
			es[7].Value = testCodec.Encode(&r)
			return es[:8]
		}},
		{"release after its end was read", Fold, [2]int64{9, 7}, func(es []Entry) []Entry {
			r := release("b", 8, 5, 0)
			es[9].Value = testCodec.Encode(&r)
			return es
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, r := read(t, 0, c.change(entries(story())))
			require.Len(t, r.Faults, 1)
			f := r.Faults[0]
			require.Equal(t, c.rule, f.Rule, f)
			require.Equal(t, c.records, [2]int64{f.Records[0].Offset, f.Records[1].Offset}, f)
		})
	}
}

func TestLogThatBeginsInTheMiddle(t *testing.T) {
	es := entries(story())
	_, r := read(t, 1, es)
	require.Empty(t, r.Faults)
	require.Empty(t, r.Terms)
	require.Contains(t, r.Unproven[0], "begins at offset 1, and no record behind it tells who led")

	whole := lease.NewReplay(0)
	state := lease.State{Parts: 1, Newer: -1, Holders: []lease.Holder{{Session: lease.Session{Process: "a", N: 1}, Name: "host a", T: testT, Last: 1}},
		Grants: []lease.Grant{{Token: 0, Roles: []int32{0, 1}}}}
	for _, e := range es[:2] {
		x, err := testCodec.Decode(e.Value)
		require.NoError(t, err)
		whole.Read(e.Offset, x)
	}
	state.Hash = whole.Hash()
	s := record(lease.Snapshot, "a", 1)
	s.State = &state
	es[2].Value = testCodec.Encode(&s)
	_, r = read(t, 1, es)
	require.Empty(t, r.Faults)
	require.Len(t, r.Terms, 5)
	require.True(t, r.Terms[0].From.IsZero(), "its Claim was deleted")
	require.Equal(t, Outlived, r.Terms[0].End)
	require.Equal(t, []int64{3}, r.From)
	require.Contains(t, r.Unproven[0], "begins at offset 1, and the record at 2 is the first that tells who led")
	require.Contains(t, r.Unproven[1], "1 of 1 waits")
}

func TestOtherRecordsHaveNoEffect(t *testing.T) {
	s := story()
	es := entries(s)
	other := lease.Codec{Group: "other", Log: "id"}.Encode(&s[1].r)
	var all []Entry
	for _, e := range es {
		for i, value := range [][]byte{[]byte("noise"), other, []byte("{"), nil, bytes.Repeat([]byte("x"), 1<<20)} {
			all = append(all, Entry{Offset: e.Offset*6 + int64(i), Value: value})
		}
	}
	_, r := read(t, 0, all)
	require.Zero(t, r.Records)
	require.Empty(t, r.Faults)

	es = append(es, Entry{Offset: 10, Value: []byte(`{"neli":9,"group":"g","kind":7}`), Time: es[9].Time})
	c := claim("d", 10, 5)
	es = append(es, Entry{Offset: 11, Time: es[9].Time.Add(testT), Value: testCodec.Encode(&c)})
	_, r = read(t, 0, es)
	require.Empty(t, r.Faults, "no record shows when d had read the newer one")
	require.Contains(t, r.Unproven[0], "1 records are of a newer version")
	c = claim("c", 10, 5)
	es[11].Value = testCodec.Encode(&c)
	_, r = read(t, 0, es)
	require.Len(t, r.Faults, 1)
	require.Equal(t, Wait, r.Faults[0].Rule)
}

// written returns a file of records.
func written(t *testing.T, log Log, entries []Entry) *bytes.Buffer {
	t.Helper()
	b := &bytes.Buffer{}
	file, err := NewRecorder(b, log)
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, file.Add(e))
	}
	require.NoError(t, file.End())
	require.Equal(t, len(entries), file.Records+len(file.others))
	return b
}

func TestFileOfRecords(t *testing.T) {
	all := entries(story())
	all[0].Value = append([]byte(`{"pad":"`+strings.Repeat("<", 20_000)+`",`), all[0].Value[1:]...) // too long if JSON escapes it
	all[9].Value = []byte(`{"neli":9,"group":"g","pad":"` + strings.Repeat("x", 70_000))            // only its beginning is JSON
	h, want := read(t, 0, all)
	last := all[len(all)-1].Offset
	others, err := ReadFile(written(t, h.Log, append(all[:len(all)-1:len(all)-1], Entry{Offset: last, Value: []byte("another group's")})))
	require.NoError(t, err)
	require.Empty(t, others.Result().Unproven, "the log was read to its end")
	file := written(t, h.Log, all).String()
	again, err := ReadFile(strings.NewReader(file))
	require.NoError(t, err)
	require.Equal(t, want, again.Result())
	lines := strings.SplitAfter(file, "\n")
	short, err := ReadFile(strings.NewReader(strings.Join(lines[:len(lines)-3], "")))
	require.NoError(t, err)
	require.Equal(t, []string{"partition 0: the log ends at offset 10, and no record from 8 on was read: what was there is not provable"}, short.Result().Unproven)

	line := `{"partition":0,"offset":1,"record":{}}`
	head := strings.SplitAfter(file, "\n")[0]
	for in, want := range map[string]string{
		"":                             "is empty, must begin with",
		"x":                            "line 1: neli_history: is 0, must be 1",
		`{"neli_history":1,"group":7}`: "line 1: json: cannot unmarshal number into Go struct field fileHeader",
		line:                           "line 1: neli_history: is 0, must be 1",
		head + "{":                     "line 2: unexpected end",
		head + strings.ReplaceAll(line, `n":0`, `n":7`):             "line 2: partition: is 7, must be 0 to 0",
		head + strings.ReplaceAll(line, `t":1`, `t":-1`):            "line 2: offset: is -1, must be at least 0",
		strings.Replace(head, `"starts":[0]`, `"starts":[3000]`, 1): "line 1: starts[0], ends[0]: are 3000 and 10, must be offsets in this order",
		strings.Replace(head, `"starts":[0]`, `"starts":[]`, 1):     "line 1: starts, ends: have 0 and 1 offsets",
		strings.Replace(head, `"group":"g"`, `"group":""`, 1):       "line 1: group: is empty",
		head + strings.Repeat("x", maxLine+1):                       "line 2: must be at most 4194304 bytes",
	} {
		_, err := ReadFile(strings.NewReader(in))
		require.ErrorContains(t, err, want)
	}
}

// Files and topics are untrusted: damage may break rules, but never the reader.
func TestDamagedFiles(t *testing.T) {
	h, _ := read(t, 0, entries(story()))
	b := written(t, h.Log, entries(story()))
	rnd := rand.New(rand.NewPCG(1, 2))
	broken := 0
	for range 5000 {
		file := bytes.Clone(b.Bytes())
		for range 1 + rnd.IntN(3) {
			file[rnd.IntN(len(file))] = "0123456789-~,\"abc"[rnd.IntN(17)]
		}
		h, err := ReadFile(bytes.NewReader(file))
		if err != nil {
			continue
		}
		r := h.Result()
		broken += len(r.Faults)
		require.NoError(t, SVG(io.Discard, r.Terms, h.Newest()))
	}
	require.Positive(t, broken)
}

// TestTimeLine compares with testdata/timeline.svg. NELI_UPDATE=1 writes it.
func TestTimeLine(t *testing.T) {
	const file = "testdata/timeline.svg"
	s := story()
	s[5].r.Name = `<b>&"b"`
	h, r := read(t, 0, entries(s))
	var b bytes.Buffer
	require.NoError(t, SVG(&b, r.Terms, h.Newest()))
	if os.Getenv("NELI_UPDATE") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
	require.NotContains(t, b.String(), "<b>")
}

func TestTimeLineIsBounded(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	for long, bars := range map[time.Duration]int{time.Millisecond: 902, time.Minute: svgBars} { // one for each pixel; overlapping ones
		var terms []Term
		for i := range 5000 {
			from := begin.Add(time.Duration(i) * time.Millisecond)
			terms = append(terms, Term{Token: int64(i), From: from, Until: from.Add(long)})
		}
		var b bytes.Buffer
		require.NoError(t, SVG(&b, terms, begin.Add(long+5*time.Second)))
		drawn := strings.Count(b.String(), "<title>")
		require.LessOrEqual(t, drawn, bars)
		require.Contains(t, b.String(), fmt.Sprintf("and %d terms that are not drawn", len(terms)-drawn))
	}
}

func TestTermsAreBounded(t *testing.T) {
	h, err := New(Log{Group: "g", TopicID: "id", Starts: []int64{0}, Ends: []int64{10}})
	require.NoError(t, err)
	h.most = 3
	for _, e := range entries(story())[:8] {
		err = h.Add(e)
		if err != nil {
			break
		}
	}
	require.EqualError(t, err, "terms: are more than 3 up to offset 5 of partition 0: give the records before it alone, with --file")
}
