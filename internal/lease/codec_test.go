package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
)

var testCodec = Codec{Group: "g", Log: "log"}

// examples returns a record of each kind.
func examples() []Record {
	x := Session{"x", 3}
	return []Record{
		{Kind: Beat, Session: x, Read: 7, Seq: 1, T: time.Second, Longest: clock.Tmax},
		{Kind: Claim, Session: x, Name: "X <&>", Read: 7, Seq: 2, T: time.Second, Longest: 0, Roles: []int32{0, 1, 5, MaxRoles - 1}},
		{Kind: Claim, Session: x, Name: "X", Read: -1, Seq: 3, T: time.Second, Longest: Unsaid, Roles: []int32{4}, Fresh: true},
		{Kind: Release, Session: x, Read: 7, Seq: 4, Longest: time.Second, Ended: []Grant{{Token: 7, Roles: []int32{1, 2}}, {Token: 0, Roles: []int32{0}}}, To: "y", Pinned: true, Moved: true},
		{Kind: Snapshot, Session: x, Name: "X", Read: 7, Seq: 5, Longest: time.Second, State: &State{Parts: 1, Hash: 1<<64 - 1, Newer: 3,
			Holders: []Holder{{x, "X", time.Second, 7}, {Session{"y", 1}, "", clock.Tmax, 0}},
			Grants:  []Grant{{Token: 7, Holder: 0, Roles: []int32{1}}, {Token: 0, Holder: 1, Roles: []int32{0, 3}}}}},
		{Kind: Snapshot, Session: x, Read: -1, Seq: 6, State: &State{Part: 1, Parts: 2, Newer: none}},
		{Kind: Hello, Session: x, Name: "X", Read: 7, Seq: 7, Longest: Unsaid, Hello: &Announcement{Priority: -3, Roles: 9, Wants: []int{}, Leaving: true, Period: time.Minute}},
		{Kind: Ping, Session: x, Read: 7, Seq: 8, Longest: Unsaid, To: "y"},
		{Kind: Pong, Session: x, Read: 7, Seq: 9, Longest: Unsaid, To: "y", Ping: 0, Hello: &Announcement{}},
		{Kind: Beat, Session: x, Read: 7, Seq: 10, Ballot: MaxBallot, T: time.Second, Longest: 0},
		{Kind: Ping, Session: x, Name: "X", Read: 7, Seq: 11, Longest: 0, To: "y", Request: &Request{ID: 3, Role: 5, Verb: Transfer, To: "Z <&>"}},
		{Kind: Pong, Session: x, Name: "X", Read: 7, Seq: 12, Longest: 0, To: "y", Ping: 6, Hello: &Announcement{}, Answer: &Answer{3, Refused, "no"}},
		{Kind: Release, Session: x, Read: 7, Seq: 13, Longest: time.Second, Ended: []Grant{{Token: 7, Roles: []int32{1}}}, To: "y", Wait: 90 * time.Millisecond},
		{Kind: Hello, Session: x, Read: 7, Seq: 14, Longest: Unsaid, Hello: &Announcement{Advertise: "https://10.0.0.8:8443/app?a&b", Zone: "eu-west-1a", Caps: true, MaxRoles: 7}},
		{Kind: Hello, Session: x, Read: 7, Seq: 15, Longest: Unsaid, Hello: &Announcement{Caps: true}},
		{Kind: Hello, Session: x, Read: 7, Seq: 16, Longest: Unsaid, Hello: &Announcement{Prepares: &Prepares{16, 30 * time.Second, true}}},
		{Kind: Ping, Session: x, Read: 7, Seq: 17, Longest: Unsaid, To: "y", Offer: &Offer{3, []int32{0, 1, 5}, true}},
		{Kind: Pong, Session: x, Read: 7, Seq: 18, Longest: Unsaid, To: "y", Ping: 6, Hello: &Announcement{}, Prepared: &Prepared{4, 3, []int32{0}, []int32{1}, []int32{5}}},
	}
}

// A leader on a majority of logs must learn every ballot, even from a record of another version.
// Records of a single log have no ballot.
func TestBallotsOfEveryVersionAreRead(t *testing.T) {
	for value, want := range map[string]int64{
		`{"neli":1,"group":"g","log":"log","kind":"vote","ballot":7}`:        7,
		`{"neli":9,"group":"g","log":"log","kind":[],"ballot":7,"read":"x"}`: 7,
		`{"neli":9,"group":"other","log":"log","ballot":7}`:                  0,
		`{"neli":9,"group":"g","log":"former","ballot":7}`:                   0,
		`{"neli":9,"group":"g","log":"log","ballot":-7}`:                     0,
		`{"neli":9,"group":"g","log":"log","ballot":9000000000000000000}`:    0,
		`{"neli":9,"group":"g","log":"log"}`:                                 0,
		`noise`:                                                              0,
	} {
		require.Equal(t, want, testCodec.Ballot([]byte(value)), value)
	}
	for _, r := range examples() {
		if r.Ballot == 0 {
			require.NotContains(t, string(testCodec.Encode(&r)), "ballot")
		}
	}
}

func TestEveryKindOfRecordSurvivesEncoding(t *testing.T) {
	for _, r := range examples() {
		value := testCodec.Encode(&r)
		got, err := testCodec.Decode(value)
		require.NoError(t, err, "%s", value)
		require.Equal(t, &r, got, "%s", value)
	}
}

// Every field of a record is checked: an example with one field changed is refused.
func TestMalformedFieldsAreRefused(t *testing.T) {
	long := strings.Repeat("x", maxName+1)
	for _, c := range []struct {
		example int
		field   string // path, separated by dots
		value   any    // nil: absent
		want    error
	}{
		{0, "neli", 0, ErrMalformed}, {0, "neli", "1", ErrMalformed}, {0, "neli", 2, ErrNewer},
		{0, "group", "h", ErrForeign}, {0, "group", nil, ErrForeign}, {0, "log", "other", ErrOtherLog}, {0, "kind", "vote", ErrNewer},
		{0, "process", "", ErrMalformed}, {0, "process", long, ErrMalformed}, {0, "session", 0, ErrMalformed}, {0, "session", -1, ErrMalformed},
		{0, "read", nil, ErrMalformed}, {0, "read", -2, ErrMalformed}, {0, "seq", 0, ErrMalformed},
		{0, "t", 0, ErrMalformed}, {0, "t", -1, ErrMalformed}, {0, "t", clock.Tmax + 1, ErrMalformed}, {7, "t", 1, ErrMalformed},
		{0, "ballot", -1, ErrMalformed}, {0, "ballot", MaxBallot + 1, ErrMalformed}, {0, "ballot", "x", ErrMalformed},
		{0, "longest", nil, ErrMalformed}, {0, "longest", -1, ErrMalformed}, {0, "longest", clock.Tmax + 1, ErrMalformed},
		{1, "name", long, ErrMalformed}, {1, "roles", "", ErrMalformed}, {1, "roles", "1,1", ErrMalformed}, {1, "roles", "2,1", ErrMalformed},
		{1, "roles", "1000000", ErrMalformed}, {1, "roles", "-1", ErrMalformed}, {1, "roles", "3-1", ErrMalformed}, {1, "roles", "0-10000", ErrMalformed},
		{1, "roles", "~", ErrMalformed}, {1, "roles", "~!", ErrMalformed}, {1, "roles", "~//////////8", ErrMalformed}, {1, "roles", "~gA", ErrMalformed}, {0, "roles", "1", ErrMalformed},
		{1, "fresh", true, ErrMalformed}, {1, "longest", nil, ErrMalformed}, {2, "longest", 0, ErrMalformed}, {0, "fresh", true, ErrMalformed},
		{3, "ended", nil, ErrMalformed}, {0, "ended", []wireGrant{{Roles: "1"}}, ErrMalformed}, {3, "ended", []wireGrant{{Token: 8, Roles: "1"}}, ErrMalformed},
		{3, "ended", []wireGrant{{Token: -1, Roles: "1"}}, ErrMalformed}, {3, "ended", []wireGrant{{Holder: 1, Roles: "1"}}, ErrMalformed}, {3, "ended", []wireGrant{{Roles: ""}}, ErrMalformed},
		{3, "to", long, ErrMalformed}, {0, "to", "y", ErrMalformed}, {7, "to", nil, ErrMalformed}, {0, "pinned", true, ErrMalformed}, {0, "moved", true, ErrMalformed},
		{4, "state", nil, ErrMalformed}, {4, "state.fold", 2, ErrNewer}, {4, "state.hash", "x", ErrMalformed}, {4, "state.hash", nil, ErrMalformed},
		{4, "state.part", 1, ErrMalformed}, {4, "state.part", -1, ErrMalformed}, {4, "state.parts", 0, ErrMalformed}, {4, "state.parts", maxParts + 1, ErrMalformed},
		{4, "state.newer", 8, ErrMalformed}, {4, "state.newer", -1, ErrMalformed}, {4, "state.holders", []wireHolder{}, ErrMalformed},
		{4, "state.holders.0.process", "", ErrMalformed}, {4, "state.holders.0.session", 0, ErrMalformed}, {4, "state.holders.0.t", 0, ErrMalformed},
		{4, "state.holders.0.t", clock.Tmax + 1, ErrMalformed}, {4, "state.holders.0.last", 8, ErrMalformed}, {4, "state.holders.0.last", -1, ErrMalformed},
		{4, "state.holders.0.name", long, ErrMalformed}, {4, "state.grants.0.holder", 2, ErrMalformed}, {4, "state.grants.0.holder", -1, ErrMalformed},
		{4, "state.grants.0.token", 8, ErrMalformed}, {4, "state.grants.0.roles", "", ErrMalformed},
		{6, "hello", nil, ErrMalformed}, {0, "hello", wireHello{}, ErrMalformed}, {6, "hello.priority", maxPriority + 1, ErrMalformed}, {6, "hello.roles", -1, ErrMalformed},
		{6, "hello.roles", MaxRoles + 1, ErrMalformed}, {6, "hello.period", -1, ErrMalformed}, {6, "hello.period", maxPeriod + 1, ErrMalformed},
		{6, "hello.wants", make([]int, maxWants+1), ErrMalformed},
		{8, "ping", nil, ErrMalformed}, {8, "ping", 8, ErrMalformed}, {8, "ping", -1, ErrMalformed}, {7, "ping", 0, ErrMalformed},
		{10, "request", 7, ErrMalformed}, {10, "request", []int{}, ErrMalformed}, {10, "request.id", 0, ErrMalformed}, {10, "request.id", -1, ErrMalformed},
		{10, "request.id", maxRequestID + 1, ErrMalformed}, {10, "request.role", -1, ErrMalformed}, {10, "request.role", MaxRoles, ErrMalformed},
		{10, "request.verb", "", ErrMalformed}, {10, "request.verb", long, ErrMalformed}, {10, "request.to", long, ErrMalformed}, {10, "to", nil, ErrMalformed},
		{11, "answer", "x", ErrMalformed}, {11, "answer.id", 0, ErrMalformed}, {11, "answer.stage", nil, ErrMalformed}, {11, "answer.stage", long, ErrMalformed},
		{11, "answer.text", long, ErrMalformed},
	} {
		t.Run(fmt.Sprintf("%d %s %.20v", c.example, c.field, c.value), func(t *testing.T) {
			var all any
			require.NoError(t, json.Unmarshal(testCodec.Encode(&examples()[c.example]), &all))
			set(all, strings.Split(c.field, "."), c.value)
			value, err := json.Marshal(all)
			require.NoError(t, err)
			got, err := testCodec.Decode(value)
			require.ErrorIs(t, err, c.want, "%s", value)
			require.Nil(t, got)
		})
	}
}

// Members that do not know the field fold a Release with any wait. If others refused it, their folds would differ.
func TestRecordWithAnyFormOfWaitIsAccepted(t *testing.T) {
	for value, want := range map[string]time.Duration{
		`90000000`: 90 * time.Millisecond, `0`: 0, `-1`: 0, `60000000000`: clock.Tmax, `60000000001`: clock.Tmax, `1.5`: 0,
		`99999999999999999999`: 0, `null`: 0, `true`: 0, `"90000000"`: 0, `"x"`: 0, `[1]`: 0, `{"x":[]}`: 0,
	} {
		for i, r := range examples() {
			r.Wait = 0
			whole := testCodec.Encode(&r)
			got, err := testCodec.Decode(append(whole[:len(whole)-1], []byte(`,"wait":`+value+`}`)...))
			require.NoError(t, err, "%d: %s", i, value)
			if r.Kind == Release {
				r.Wait = want
			}
			require.Equal(t, &r, got, value)
		}
	}
}

// set changes a field of decoded JSON.
func set(at any, path []string, value any) {
	if list, ok := at.([]any); ok {
		set(list[path[0][0]-'0'], path[1:], value)
		return
	}
	object := at.(map[string]any)
	switch {
	case len(path) > 1:
		set(object[path[0]], path[1:], value)
	case value == nil:
		delete(object, path[0])
	default:
		object[path[0]] = value
	}
}

func TestRecordTenTimesTooLargeIsClassified(t *testing.T) {
	padding := strings.Repeat("x", 10*MaxRecord)
	for value, want := range map[string]error{
		`{"neli":1,"group":"g","pad":"` + padding + `"}`: ErrMalformed,
		`{"neli":1,"group":"h","pad":"` + padding + `"}`: ErrForeign,
		`{"neli":2,"group":"g","pad":"` + padding + `"}`: ErrNewer,
		padding: ErrMalformed,
		`{"pad":"` + padding + `","neli":2,"group":"g"}`: ErrMalformed, // a reader looks no farther than MaxRecord
	} {
		_, err := testCodec.Decode([]byte(value))
		require.ErrorIs(t, err, want)
	}
	require.EqualValues(t, 7, testCodec.Ballot([]byte(`{"neli":2,"group":"g","log":"log","ballot":7,"pad":"`+padding+`"}`)))
}

// A record of any size costs no more work than one of MaxRecord bytes.
func TestLargeRecordsAreNotParsed(t *testing.T) {
	for _, begins := range []string{`{"neli":1,"group":"h","pad":"`, `{"neli":2,"group":"g","log":"log","pad":"`, `[`, `{"pad":[`, "x"} {
		value := []byte(begins + strings.Repeat(`"1",`, 8<<20))
		began := time.Now()
		_, err := testCodec.Decode(value)
		require.Error(t, err)
		_ = testCodec.Ballot(value)
		require.Less(t, time.Since(began), 100*time.Millisecond, "32 MiB take a second to parse: %s", begins)
	}
}

func TestANewerVersionMayChangeEveryOtherField(t *testing.T) {
	_, err := testCodec.Decode([]byte(`{"neli":2,"group":"g","log":1,"kind":{},"process":[],"session":"","read":"x","state":7}`))
	require.ErrorIs(t, err, ErrNewer)
}

// A decoded record takes at most some hundred times the memory of its bytes, whatever it contains.
func TestDecodingIsBounded(t *testing.T) {
	grant := `{"roles":"0-9999"},`
	value := `{"neli":1,"group":"g","log":"log","kind":"release","process":"x","session":1,"read":1,"seq":1,"ended":[` +
		strings.TrimSuffix(strings.Repeat(grant, 3000), ",") + `]}`
	require.Less(t, len(value), MaxRecord)
	_, err := testCodec.Decode([]byte(value))
	require.ErrorIs(t, err, ErrMalformed)
	bytes := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			_, _ = testCodec.Decode([]byte(value))
		}
	}).AllocedBytesPerOp()
	require.Less(t, bytes, int64(4<<20))
}

func TestNamesFitARecord(t *testing.T) {
	for _, name := range []string{strings.Repeat("\xff", 1000), strings.Repeat("€", 1000), strings.Repeat("<", 1000), ""} {
		l := New(Rules{Process: "p", Name: name, T: time.Second})
		now := clock.Instant{Mono: 1, Wall: 1, Raw: 1}
		l.Begin(0, true, now)
		r, ok := l.Claim([]int32{0}, now.Add(2*time.Second))
		require.True(t, ok)
		got, err := testCodec.Decode(testCodec.Encode(&r))
		require.NoError(t, err)
		require.Equal(t, r.Name, got.Name)
	}
}

// A Snapshot stays below MaxRecord even if all its holders have names of the greatest length.
func TestSnapshotWithLongNamesHasMoreParts(t *testing.T) {
	l, now := New(Rules{Process: "me", T: time.Second}), clock.Instant{Mono: 1, Wall: 1, Raw: 1}
	l.Begin(0, true, now)
	for o := range int64(300) {
		process := fmt.Sprintf("%064d", o)
		l.Read(o, &Record{Kind: Claim, Session: Session{process, 1}, Name: strings.Repeat("<", maxName), Read: o - 1, T: time.Second, Fresh: o == 0, Roles: []int32{int32(o)}}, now)
	}
	parts := l.Snapshot(now)
	assert.Greater(t, len(parts), 1)
	for _, r := range parts {
		require.LessOrEqual(t, len(testCodec.Encode(&r)), MaxRecord)
	}
}

func FuzzDecode(f *testing.F) {
	for _, r := range examples() {
		f.Add(testCodec.Encode(&r))
	}
	f.Add([]byte(`{"neli":2,"group":"g"}`))
	f.Add([]byte(`{"neli":1,"group":"g","log":"log","kind":"claim","process":"x","session":1,"read":0,"seq":1,"t":1,"longest":0,"roles":"~AAAA"}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := testCodec.Decode(value)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrForeign) && !errors.Is(err, ErrNewer) && !errors.Is(err, ErrOtherLog) {
				t.Fatalf("an unclassified error: %v", err)
			}
			return
		}
		if r.Kind == Beat || r.Kind == Release {
			r.Name = "" // a Beat or Release is written without its name
		}
		again := testCodec.Encode(r)
		if len(again) > 2*MaxRecord {
			t.Fatalf("%d bytes became %d", len(value), len(again))
		}
		if len(again) > MaxRecord {
			return // the input used a shorter spelling than ours
		}
		got, err := testCodec.Decode(again)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("%s\n%s\n%v\n%+v\n%+v", value, again, err, r, got)
		}
		l := New(Rules{Process: "p", T: time.Second, History: 4})
		l.Begin(0, false, clock.Instant{Mono: 1, Wall: 1, Raw: 1})
		l.Read(max(0, r.Read+1), r, clock.Instant{Mono: 2, Wall: 2, Raw: 2}) // must not panic
	})
}
