package nelihttp

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// With more than 4,096 roles, calls of Standings within T/50 share one look, which may be older than the change
// that Watch reported. The stream must report the new holder nevertheless.
func TestAStreamShowsTheLastChangeOfManyRoles(t *testing.T) {
	simulate(t, func(t *testing.T, net *pipes) {
		const roles = 5000
		b := nelitest.NewBroker(nelitest.Options{})
		t.Cleanup(b.Close)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 2)
		var members []*neli.Neli
		for _, name := range []string{"alice", "bob"} {
			n, err := neli.New(neli.Config{LeaderGroupID: "g", Name: name, Roles: roles, HeartbeatTimeout: 10 * time.Second, Provider: b.Provider(name)})
			require.NoError(t, err)
			members = append(members, n)
			go func() {
				ended <- n.Lead(ctx, func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); return nil })
			}()
			time.Sleep(time.Minute)
		}
		alice := members[0]
		role := slices.Collect(alice.Led())[0]
		l := listen(t, net.serve(t, &http.Server{Handler: Handler(alice)}))
		time.Sleep(time.Minute)

		require.NoError(t, alice.Transfer(ctx, role, "bob"))
		time.Sleep(time.Minute)
		holder, ok := alice.Holder(role)
		require.True(t, ok)
		require.Equal(t, "bob", holder.Name)
		said := ""
		for _, e := range state(l, func() []event { return slices.Clone(l.events) }) {
			var s neli.Standing
			require.NoError(t, json.Unmarshal([]byte(e.data), &s))
			if slices.Contains(slices.Collect(s.Roles()), role) {
				said = s.Status.String() + " " + s.Holder.Name
			}
		}
		l.leave()
		cancel()
		for range members {
			<-ended
		}
		for _, n := range members {
			require.NoError(t, n.Close())
		}
		require.Equal(t, "held bob", said, "what the stream said last of role %d", role)
	})
}
