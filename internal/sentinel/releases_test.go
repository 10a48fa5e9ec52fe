package sentinel

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/released"
)

// packets returns examples of all packets between members, guards and sentinels. Their names must not change.
func packets() map[string]any {
	return map[string]any{
		"register": &request{Register: &Registration{Topic: "topic", TopicID: "id", Logs: 3, Group: "g", Process: ProcessID("secret"), Secret: "secret",
			Name: "X <&>", T: 5 * time.Second, Rho: 0.0005, Running: true, Number: 7}},
		"register without a broker": &request{Register: &Registration{Group: "g", Process: ProcessID("secret"), Secret: "secret", T: time.Second}},
		"guard":                     &request{Guard: &guardian{Process: ProcessID("secret"), Secret: "secret", Number: 7}},
		"asked":                     &Answer{State: Asked},
		"confirm":                   &request{Confirm: true},
		"settled":                   &request{Settled: true},
		"clear":                     &request{Clear: true},
		"goodbye":                   &request{Goodbye: true},
		"count":                     &request{Count: &query{Topic: "topic", Group: "g"}},
		"counted":                   &Count{Registered: 3, Watched: 2},
		"none":                      &Answer{State: None},
		"registered":                &Answer{State: Registered},
		"watching":                  &Answer{State: Watching},
		"refused":                   &Answer{State: Refused, Reason: "no"},
		"gone":                      &Answer{State: Gone},
	}
}

// A sentinel may be older or newer than its members, so each must read the packets of all releases.
func TestRecordsOfReleases(t *testing.T) {
	now := map[string]string{}
	for name, v := range packets() {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		now[name] = string(text)
	}
	released.Messages(t, now, func(t *testing.T, name, message string) {
		want := packets()[name]
		require.NotNil(t, want, "what was released is read for ever")
		got := reflect.New(reflect.TypeOf(want).Elem()).Interface()
		require.NoError(t, json.Unmarshal([]byte(message), got))
		require.Equal(t, want, got)
	})
}
