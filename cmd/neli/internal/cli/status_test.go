package cli

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// Without --roles, status and watch show all roles for which a member contends.
func TestStatusShowsAllRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		defer b.Close()
		member := func(name string, observer bool, roles int) *neli.Neli {
			n, err := neli.New(neli.Config{LeaderGroupID: "jobs", Name: name, Roles: roles, Observer: observer, Provider: b.Provider(name), Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			return n
		}
		leader := member("leader", false, 17)
		_, err := leader.Background(func() { time.Sleep(10 * time.Millisecond) })
		require.NoError(t, err)
		time.Sleep(time.Minute)
		for all, want := range map[bool]string{true: "0-16", false: "0"} {
			watcher := member("watcher", true, 1)
			var out strings.Builder
			require.NoError(t, status(t.Context(), watcher, &out, false, "", all))
			require.Regexp(t, `(?m)^0 +`+want+` +held +leader `, out.String())
			require.NoError(t, watcher.Close())
		}
		follower := member("follower", true, 1)
		go followRoles(t.Context(), follower)
		time.Sleep(time.Minute)
		require.Equal(t, 17, follower.Stats().Held)
		require.NoError(t, follower.Close())
		require.NoError(t, leader.Close())
		time.Sleep(time.Minute)
	})
}

// Wrong arguments are answered by a sentence and the usage. --version needs no verb.
func TestWrongArgumentsShowTheUsage(t *testing.T) {
	for args, want := range map[string]string{
		"run":                         "neli: run: the command is missing: neli run [flags] -- command [arguments]\n",
		"status x":                    "neli: status: takes no arguments, 1 given: neli status\n",
		"status --roles -3 --group g": "neli: --roles -3: must be at least 1\n",
	} {
		var errs strings.Builder
		require.Equal(t, codeFailure, Main(strings.Fields(args), io.Discard, &errs))
		require.Equal(t, want, errs.String())
	}
	t.Setenv("NELI_VERSION", "x")
	var out strings.Builder
	require.Zero(t, Main([]string{"--version"}, &out, os.Stderr))
	require.Regexp(t, `^neli \S+ go1`, out.String())
	require.Zero(t, Main([]string{"run", "--help"}, &out, os.Stderr))
	require.Contains(t, out.String(), "-- /usr/local/bin/mailer --queue out")
}
