package lease

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
)

// with adds a field to an encoded record.
func with(t *testing.T, value []byte, field string, what any) []byte {
	t.Helper()
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(value, &all))
	of, err := json.Marshal(what)
	require.NoError(t, err)
	all[field] = of
	b, err := json.Marshal(all)
	require.NoError(t, err)
	return b
}

// without decodes a record as a version before requests does: that version ignores the fields as unknown.
func without(t *testing.T, value []byte) *Record {
	t.Helper()
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(value, &all))
	delete(all, "request")
	delete(all, "answer")
	b, err := json.Marshal(all)
	require.NoError(t, err)
	r, err := testCodec.Decode(b)
	require.NoError(t, err)
	return r
}

// Older members take a request for a Ping, and its answer for a Pong. They must not take them for
// an unknown kind, which would keep them from claiming for a minute.
func TestOlderMembersTakeARequestForAPing(t *testing.T) {
	const request = `{"neli":1,"group":"g","log":"log","kind":"ping","process":"x","session":3,"name":"X","read":7,"seq":11,"longest":0,` +
		`"to":"y","request":{"id":3,"role":5,"verb":"transfer","to":"Z"}}`
	const answer = `{"neli":1,"group":"g","log":"log","kind":"pong","process":"y","session":1,"read":8,"seq":2,"longest":0,` +
		`"to":"x","ping":8,"hello":{"roles":9},"answer":{"id":3,"stage":"refused","text":"no"}}`
	for value, kind := range map[string]Kind{request: Ping, answer: Pong} {
		old := without(t, []byte(value))
		require.Equal(t, kind, old.Kind)
		r, err := testCodec.Decode([]byte(value))
		require.NoError(t, err)
		require.False(t, r.Request == nil && r.Answer == nil)
		r.Request, r.Answer = nil, nil
		require.Equal(t, old, r, "another field has changed, too")
	}
}

// A field that only newer members know must not decide whether a record is folded, or folds would
// differ. A record that has it by mistake, whatever its contents, means the same as without it.
func TestRequestsOutsidePingsAreIgnored(t *testing.T) {
	for _, r := range examples() {
		value := testCodec.Encode(&r)
		want := without(t, value)
		for _, field := range []string{"request", "answer"} {
			if r.Kind == Ping && field == "request" || r.Kind == Pong && field == "answer" {
				continue // the kind that may have it
			}
			for _, what := range []any{7, "x", nil, []int{1}, map[string]any{"id": "x"}, map[string]any{"id": 1, "role": 1, "verb": "transfer", "stage": "done"}} {
				got, err := testCodec.Decode(with(t, value, field, what))
				require.NoError(t, err, "%s: %s = %v", r.Kind, field, what)
				got.Request, got.Answer = nil, nil
				require.Equal(t, want, got, "%s: %s = %v", r.Kind, field, what)
			}
		}
	}
}

// A request changes nothing that the rules depend on: neither fold nor silence nor evidence. That
// holds for every sender, and whether this process knows the fold or not.
func TestARequestIsNoPartOfTheRules(t *testing.T) {
	at := func(d time.Duration) clock.Instant { return clock.Alike(time.Hour + d) }
	for _, from := range []Session{{"holder", 1}, {"holder", 9}, {"stranger", 1}, {"me", 7}} {
		t.Run(fmt.Sprint(from), func(t *testing.T) {
			l := New(Rules{Process: "me", T: time.Second, Rho: 0.0005, History: 100})
			l.Begin(0, true, at(0))
			ask := &Record{Kind: Ping, Session: from, Read: -1, Seq: 1, Longest: Unsaid, To: "holder", Request: &Request{ID: 1, Verb: StepDown}}
			fresh := l.FreshAt()
			require.Equal(t, Event{}, l.Read(0, ask, at(0)))
			require.Equal(t, fresh, l.FreshAt(), "a request moved the time of a fresh Claim")
			l.Read(1, &Record{Kind: Claim, Session: Session{"holder", 1}, Read: 0, Seq: 2, T: time.Second, Longest: Unsaid, Fresh: true, Roles: []int32{0}}, at(0))
			require.True(t, l.Known())
			hash, free := l.fold.hash, l.FreeAt(0)
			for o := int64(2); o < 20; o++ {
				ask.Read = o - 1
				ev := l.Read(o, ask, at(time.Duration(o)*time.Millisecond))
				require.Equal(t, Event{Changed: ev.Changed}, ev)
				require.Empty(t, ev.Changed)
			}
			require.Equal(t, hash, l.fold.hash)
			require.Equal(t, free, l.FreeAt(0), "a request ended the sender's silence")
		})
	}
}

// A text that is too long for a record is cut off, rather than refused by the reader.
func TestAnAnswerFitsARecord(t *testing.T) {
	for _, text := range []string{"", "no", strings.Repeat("€", 1000), "\x00\x1b[2J\xff", string(bytes.Repeat([]byte{'"'}, 4000))} {
		r := Record{Kind: Pong, Session: Session{"x", 1}, Read: 1, Seq: 1, Longest: 0, To: "y", Hello: &Announcement{}, Answer: &Answer{1, Failed, text}}
		value := testCodec.Encode(&r)
		require.Less(t, len(value), MaxRecord)
		got, err := testCodec.Decode(value)
		require.NoError(t, err)
		require.LessOrEqual(t, len(got.Answer.Text), maxName)
	}
}
