package neli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawRecord draws a record as this library sends it.
func drawRecord(t *rapid.T) record {
	text := func(name string, max int) string {
		return rapid.StringN(0, max/4, max).Draw(t, name)
	}
	r := record{
		kind:   rapid.SampledFrom([]kind{kindClaim, kindBeat, kindRelease, kindHello}).Draw(t, "kind"),
		group:  "g" + text("group", 200),
		member: "m" + text("member", maxIDLength-1),
		name:   text("name", maxNameLength),
		token:  noToken,
		read:   -1,
	}
	if r.kind == kindHello {
		r.leaving = rapid.Bool().Draw(t, "leaving")
		r.priority = rapid.IntRange(-maxPriority, maxPriority).Draw(t, "priority")
		r.to = text("to", maxIDLength)
		r.read = rapid.Int64Min(-1).Draw(t, "answers")
		if rapid.Bool().Draw(t, "wants some") {
			r.wants = rapid.SliceOf(rapid.IntRange(0, maxPartitions)).Draw(t, "wants")
		}
		return r
	}
	r.seq = rapid.Uint64Min(1).Draw(t, "seq")
	r.read = rapid.Int64Min(-1).Draw(t, "read")
	if r.kind != kindClaim {
		r.token = rapid.Int64Min(0).Draw(t, "token")
	}
	if r.kind == kindRelease {
		r.to, r.pinned, r.moved = text("to", maxIDLength), rapid.Bool().Draw(t, "pinned"), rapid.Bool().Draw(t, "moved")
	}
	return r
}

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		value := r.encode()
		got, err := decode(value, r.group)
		require.NoError(t, err, "%s", value)
		require.Equal(t, r, got)

		_, err = decode(value, r.group+"2")
		require.ErrorIs(t, err, errForeign)
		require.True(t, json.Valid(value))
		require.NotContains(t, string(value), "\n", "a console consumer shows one line")
	})
}

// The wire form is read by other versions of this library: it does not change
// by accident.
func TestRecordOnTheWire(t *testing.T) {
	for _, c := range []struct {
		r    record
		want string
	}{
		{record{kind: kindClaim, group: "app", member: "K3", name: "host_1_2", token: noToken, read: -1, seq: 1},
			`{"neli":1,"kind":"claim","group":"app","member":"K3","name":"host_1_2","read":-1,"seq":1}`},
		{record{kind: kindBeat, group: "app", member: "K3", name: "host_1_2", token: 0, read: 40, seq: 9},
			`{"neli":1,"kind":"beat","group":"app","member":"K3","name":"host_1_2","token":0,"read":40,"seq":9}`},
		{record{kind: kindRelease, group: "app", member: "K3", token: 17, read: 0, seq: math.MaxUint64},
			`{"neli":1,"kind":"release","group":"app","member":"K3","token":17,"read":0,"seq":18446744073709551615}`},
		{record{kind: kindHello, group: "app", member: "K3", token: noToken, read: -1},
			`{"neli":1,"kind":"hello","group":"app","member":"K3"}`},
		{record{kind: kindHello, group: "app", member: "K3", token: noToken, read: -1, wants: []int{}, leaving: true},
			`{"neli":1,"kind":"hello","group":"app","member":"K3","wants":[],"leaving":true}`},
		{record{kind: kindHello, group: "app", member: "K3", token: noToken, read: -1, wants: []int{3, 1}},
			`{"neli":1,"kind":"hello","group":"app","member":"K3","wants":[3,1]}`},
		{record{kind: kindHello, group: "app", member: "K3", token: noToken, read: -1, priority: -7},
			`{"neli":1,"kind":"hello","group":"app","member":"K3","priority":-7}`},
		{record{kind: kindHello, group: "app", member: "K3", token: noToken, read: -1, to: "L4"},
			`{"neli":1,"kind":"hello","group":"app","member":"K3","to":"L4"}`},
		{record{kind: kindHello, group: "app", member: "L4", token: noToken, read: 23},
			`{"neli":1,"kind":"hello","group":"app","member":"L4","read":23}`},
		{record{kind: kindRelease, group: "app", member: "K3", token: 17, read: 20, seq: 4, to: "L4"},
			`{"neli":1,"kind":"release","group":"app","member":"K3","token":17,"read":20,"seq":4,"to":"L4"}`},
		{record{kind: kindRelease, group: "app", member: "K3", token: 17, read: 20, seq: 4, to: "L4", pinned: true},
			`{"neli":1,"kind":"release","group":"app","member":"K3","token":17,"read":20,"seq":4,"to":"L4","pinned":true}`},
	} {
		require.Equal(t, c.want, string(c.r.encode()))
		got, err := decode([]byte(c.want), "app")
		require.NoError(t, err)
		require.Equal(t, c.r, got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		value string
		want  error
	}{
		{``, errMalformed},
		{`null`, errMalformed},
		{`[]`, errMalformed},
		{`{}`, errMalformed},
		{`rubbish`, errMalformed},
		{"\x00\xff", errMalformed},
		{`{"neli":0,"kind":"claim","group":"g","member":"m","read":1,"seq":1}`, errMalformed},
		{`{"neli":-1,"kind":"claim","group":"g","member":"m","read":1,"seq":1}`, errMalformed},
		{`{"neli":1.5,"kind":"claim","group":"g","member":"m","read":1,"seq":1}`, errMalformed},
		{`{"neli":2,"kind":"claim","group":"g","member":"m","read":1,"seq":1}`, errNewer},
		{`{"neli":2,"kind":"coup","group":"other"}`, errNewer},
		{`{"neli":2,"kind":7}`, errNewer}, // whatever else it has, of whatever type
		{`{"neli":2,"token":"x"}`, errNewer},
		{`{"token":{},"neli":3}`, errNewer},
		{`{"group":["g"],"wants":"all","seq":-1,"neli":9}`, errNewer},
		{`{"neli":"2","kind":7}`, errMalformed},
		{`{"neli":1,"kind":7,"group":"other"}`, errMalformed},
		{`{"neli":2,"kind":`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"other","member":"m","read":1,"seq":1}`, errForeign},
		{`{"neli":1,"kind":"claim","group":"G","member":"m","read":1,"seq":1}`, errForeign},
		{`{"neli":1,"kind":"rubbish","group":"other"}`, errForeign},
		{`{"neli":1,"kind":"claim","member":"m","read":1,"seq":1}`, errForeign},

		{`{"neli":1,"group":"g","member":"m","read":1,"seq":1}`, errMalformed},
		{`{"neli":1,"kind":"Claim","group":"g","member":"m","read":1,"seq":1}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","read":1,"seq":1}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"","read":1,"seq":1}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"` + strings.Repeat("m", maxIDLength+1) + `","read":1,"seq":1}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","name":"` + strings.Repeat("n", maxNameLength+1) + `","read":1,"seq":1}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","seq":1}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","read":null,"seq":1}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","read":-2,"seq":1}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","read":9223372036854775808,"seq":1}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","read":"1","seq":1}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","read":1}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","read":1,"seq":0}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","read":1,"seq":-1}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","read":1,"seq":1,"token":1}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","read":1,"seq":1,"wants":[]}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","read":1,"seq":1,"leaving":true}`, errMalformed},
		{`{"neli":1,"kind":"beat","group":"g","member":"m","read":1,"seq":1}`, errMalformed},
		{`{"neli":1,"kind":"beat","group":"g","member":"m","read":1,"seq":1,"token":-1}`, errMalformed},
		{`{"neli":1,"kind":"release","group":"g","member":"m","read":1,"seq":1}`, errMalformed},
		{`{"neli":1,"kind":"hello","group":"g"}`, errMalformed},
		{`{"neli":1,"kind":"hello","group":"g","member":"m","read":-1}`, errMalformed},
		{`{"neli":1,"kind":"hello","group":"g","member":"m","token":1}`, errMalformed},
		{`{"neli":1,"kind":"hello","group":"g","member":"m","seq":1}`, errMalformed},
		{`{"neli":1,"kind":"hello","group":"g","member":"m","wants":["1"]}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","read":1,"seq":1} {}`, errMalformed},
		{`{"neli":1,"kind":"hello","group":"g","member":"m","priority":1000001}`, errMalformed},
		{`{"neli":1,"kind":"hello","group":"g","member":"m","priority":-1000001}`, errMalformed},
		{`{"neli":1,"kind":"hello","group":"g","member":"m","priority":1.5}`, errMalformed},
		{`{"neli":1,"kind":"hello","group":"g","member":"m","to":"` + strings.Repeat("x", maxIDLength+1) + `"}`, errMalformed},
		{`{"neli":1,"kind":"hello","group":"g","member":"m","pinned":true}`, errMalformed},
		{`{"neli":1,"kind":"hello","group":"g","member":"m","moved":true}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","read":1,"seq":1,"moved":true}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","read":1,"seq":1,"priority":1}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","read":1,"seq":1,"to":"x"}`, errMalformed},
		{`{"neli":1,"kind":"claim","group":"g","member":"m","read":1,"seq":1,"pinned":true}`, errMalformed},
		{`{"neli":1,"kind":"beat","group":"g","member":"m","read":1,"seq":1,"token":1,"to":"x"}`, errMalformed},
		{`{"neli":1,"kind":"beat","group":"g","member":"m","read":1,"seq":1,"token":1,"pinned":true}`, errMalformed},
		{`{"neli":1,"kind":"beat","group":"g","member":"m","read":1,"seq":1,"token":1,"priority":-1}`, errMalformed},
		{`{"neli":1,"kind":"release","group":"g","member":"m","read":1,"seq":1,"token":1,"priority":1}`, errMalformed},
		{`{"neli":1,"kind":"release","group":"g","member":"m","read":1,"seq":1,"token":1,"to":"` + strings.Repeat("x", maxIDLength+1) + `"}`, errMalformed},
		{`{"neli":1,"kind":"release","group":"g","member":"m","read":1,"seq":1,"token":1,"to":7}`, errMalformed},
		{strings.Repeat(`{"a":`, 11_000), errMalformed},
	} {
		r, err := decode([]byte(c.value), "g")
		require.ErrorIs(t, err, c.want, "%s", c.value)
		require.Zero(t, r, "%s", c.value)
		for _, other := range []error{errMalformed, errNewer, errForeign} {
			if other != c.want {
				require.NotErrorIs(t, err, other, "%s", c.value)
			}
		}
	}
	good := `{"neli":1,"kind":"claim","group":"g","member":"m","read":-1,"seq":1,"from the future":{"a":[1]}}`
	_, err := decode([]byte(good), "g")
	require.NoError(t, err, "a field that is not known does not harm")
	_, err = decode([]byte(good+strings.Repeat(" ", maxRecordSize-len(good))), "g")
	require.NoError(t, err)
	_, err = decode([]byte(good+strings.Repeat(" ", maxRecordSize-len(good)+1)), "g")
	require.ErrorIs(t, err, errMalformed, "too long")
}

// What a hello says of many partitions still fits into a record.
func TestRecordSize(t *testing.T) {
	hello := record{kind: kindHello, group: strings.Repeat("g", 255), member: newID(), name: strings.Repeat("n", maxNameLength), token: noToken, read: -1}
	for p := range 10_000 {
		hello.wants = append(hello.wants, p)
	}
	value := hello.encode()
	require.LessOrEqual(t, len(value), maxRecordSize)
	got, err := decode(value, hello.group)
	require.NoError(t, err)
	require.Equal(t, hello, got)

	beat := record{kind: kindBeat, group: "orders", member: newID(), name: "host-17_4711_1750000000", token: 1 << 40, read: 1 << 40, seq: 1 << 40}
	require.Less(t, len(beat.encode()), 250, "a thousand a second are sent")
}

func FuzzDecode(f *testing.F) {
	for _, r := range []record{
		{kind: kindClaim, group: "g", member: "m", name: "n", token: noToken, read: -1, seq: 1},
		{kind: kindBeat, group: "g", member: "m", name: "n", token: 3, read: 4, seq: 5},
		{kind: kindRelease, group: "g", member: "m", token: 3, read: math.MaxInt64, seq: math.MaxUint64},
		{kind: kindHello, group: "g", member: "m", token: noToken, read: -1, wants: []int{0, 7, -1}},
		{kind: kindHello, group: "g", member: "m", token: noToken, read: -1, wants: []int{}, leaving: true},
		{kind: kindHello, group: "g", member: "m", token: noToken, read: -1, priority: maxPriority},
		{kind: kindRelease, group: "g", member: "m", token: 3, read: 4, seq: 5, to: "x", pinned: true},
	} {
		f.Add(r.encode())
	}
	f.Add([]byte(`{"neli":2}`))
	f.Add([]byte(`{"NELI":1,"kind":"claim","group":"g","member":"\ud800","read":0,"seq":1}`))
	f.Add([]byte("{\"neli\":1,\"kind\":\"claim\",\"group\":\"g\",\"member\":\"\xff\",\"read\":0,\"seq\":1,\"seq\":2}"))
	f.Fuzz(func(t *testing.T, value []byte) {
		given := bytes.Clone(value)
		r, err := decode(value, "g")
		require.Equal(t, given, value, "decode changed its argument")
		if err != nil {
			require.Zero(t, r)
			return
		}
		require.True(t, r.read >= -1 && r.token >= noToken && r.member != "" && r.group == "g", "%+v", r)
		again := r.encode()
		if len(again) > maxRecordSize {
			return // escaped characters take more room than they did
		}
		got, err := decode(again, "g")
		require.NoError(t, err, "%s", again)
		require.Equal(t, r, got)

		// Nor does the fold care what it is given.
		l := lease{leaseRules: leaseRules{group: "g", term: threshold{time.Second, true}, wait: time.Second, every: time.Second / 5,
			newID: func() string { return "m" }}}
		now := instant{mono: time.Hour, wall: time.Hour}
		l.start(0, now)
		for o := range int64(3) {
			before := l.read
			l.consume(r, o, now)
			require.GreaterOrEqual(t, l.read, before, fmt.Sprintf("%+v", r))
			require.LessOrEqual(t, l.token, l.read, "a token that lies ahead was adopted")
		}
	})
}
