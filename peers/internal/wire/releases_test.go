package wire

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/goneli/neli/internal/released"
)

// said returns the messages of members and log hosts, under names that never change.
func said() map[string]proto.Message {
	agreement := &Agreement{Version: 1, Group: "g", TimeoutNanos: 5e9, MaxClockDrift: 0.0005,
		Hosts: []*Host{{Id: "a", Address: "a:1"}, {Id: "b", Address: "b:1"}, {Id: "c", Address: "c:1"}}, Host: "b"}
	incarnation := []byte("0123456789abcdef")
	return map[string]proto.Message{
		"agreement":     agreement,
		"hello":         &ToHost{Kind: &ToHost_Hello{Hello: &Hello{Agreement: agreement, Member: "X", Incarnation: incarnation, From: 7}}},
		"first hello":   &ToHost{Kind: &ToHost_Hello{Hello: &Hello{Agreement: agreement, Member: "X"}}},
		"append":        &ToHost{Kind: &ToHost_Append{Append: &Append{Seq: 1, Incarnation: incarnation, Value: []byte(`{"neli":1}`), Ballot: 1 << 61}}},
		"begin":         &FromHost{Kind: &FromHost_Begin{Begin: &Begin{Incarnation: incarnation, Offset: 7, End: 9, First: 3, Top: 1 << 61}}},
		"record":        &FromHost{Kind: &FromHost_Record{Record: &Record{Offset: 7, Value: []byte(`{"neli":1}`), Seq: 1}}},
		"record, other": &FromHost{Kind: &FromHost_Record{Record: &Record{Offset: 7, Value: []byte(`{"neli":1}`)}}},
		"alive":         &FromHost{Kind: &FromHost_Alive{Alive: &Alive{Incarnation: incarnation, End: 9}}},
		"refusal":       &FromHost{Kind: &FromHost_Refusal{Refusal: &Refusal{Seq: 1, Reason: "no"}}},
	}
}

// Members and log hosts of all releases talk to each other, so each must read the others' messages.
func TestRecordsOfReleases(t *testing.T) {
	now := map[string]string{}
	for name, m := range said() {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		require.NoError(t, err)
		now[name] = base64.StdEncoding.EncodeToString(b)
	}
	released.Messages(t, now, func(t *testing.T, name, message string) {
		want := said()[name]
		require.NotNil(t, want, "a message of a release is not read any more")
		b, err := base64.StdEncoding.DecodeString(message)
		require.NoError(t, err)
		got := want.ProtoReflect().New().Interface()
		require.NoError(t, proto.Unmarshal(b, got))
		require.True(t, proto.Equal(want, got), "%v, not %v", got, want)
		require.Empty(t, got.ProtoReflect().GetUnknown())
	})
}
