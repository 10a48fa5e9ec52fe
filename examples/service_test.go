package examples_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/pause"
)

var servedBy = regexp.MustCompile(`^shard \d+, token \d+, served by (\S+)\n$`)

// owner returns the address of the process that serves a key, by asking the process at an address.
func owner(t *testing.T, address, key string) string {
	t.Helper()
	status, body := askLed(t, "http://"+address+"/keys/"+key)
	require.Equal(t, http.StatusOK, status, body)
	m := servedBy.FindStringSubmatch(body)
	require.NotNil(t, m, body)
	return m[1]
}

// awaitOwners waits until the process at an address says that each of some keys is served by one of the owners, and
// that each owner serves some.
func awaitOwners(t *testing.T, address string, owners ...string) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; require.NoError(t, pause.For(t.Context(), 100*time.Millisecond)) {
		found := map[string]bool{}
		for i := range 40 {
			found[owner(t, address, fmt.Sprint("key", i))] = true
		}
		all := len(found) == len(owners)
		for _, o := range owners {
			all = all && found[o]
		}
		if all {
			return
		}
		require.True(t, time.Now().Before(deadline), "served by %v, not by %v", found, owners)
	}
}

func testService(t *testing.T, f flags) {
	s := newStage(t)
	addresses, err := kafkatest.FreeAddrs(2)
	require.NoError(t, err)
	at := map[*program]string{}
	start := func(name, address string) *program {
		p := s.start("service", name, "-bootstrap", f.bootstrap, "-group", f.fresh, "-listen", address)
		at[p] = address
		return p
	}
	const works = `sends what is due, token (\d+)`
	anna, boris := start("anna", addresses[0]), start("boris", addresses[1])
	leader, first := s.await(nil, works)
	next := other(leader, anna, boris)
	for _, address := range addresses {
		awaitOwners(t, address, addresses...) // each forwards to the other
	}

	leader.Kill()
	_, second := s.await(next, works)
	require.Greater(t, number(t, second[0]), number(t, first[0]))
	awaitOwners(t, at[next], at[next])

	clara := start("clara", at[leader])
	awaitOwners(t, at[next], addresses...)
	next.suspend()
	stopped := time.Now()
	_, third := s.await(clara, works)
	require.Greater(t, number(t, third[0]), number(t, first[0]))
	answer := make(chan string, 1)
	go func() {
		_, body := ask(t, "http://"+at[next]+"/keys/ada")
		answer <- body
	}()
	s.during(2*leaseT, stopped)
	before := s.said(next, works)
	next.signal(syscall.SIGCONT)
	require.NotContains(t, <-answer, "served by "+at[next], "it wakes, and answers although clara owns all keys")
	s.during(3*time.Second, time.Now())
	require.Equal(t, before, s.said(next, works), "it wakes, and works although clara leads")

	stream, err := http.Get("http://" + at[clara] + "/neli/events")
	require.NoError(t, err)
	defer stream.Body.Close()
	clara.signal(syscall.SIGINT)
	clara.ends() // also with an open stream
	_, err = io.Copy(io.Discard, stream.Body)
	require.NoError(t, err)
	awaitOwners(t, at[next], at[next])
	s.await(next, works)
	next.signal(syscall.SIGTERM)
	next.ends()
}
