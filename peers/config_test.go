package peers

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
)

// three returns a valid list.
func three() []Host {
	return []Host{{"a", "127.0.0.1:7401"}, {"b", "127.0.0.1:7402"}, {"c", "127.0.0.1:7403"}}
}

func TestConfigNamesEveryFault(t *testing.T) {
	files := newAuthority(t).issue(t, "10.0.0.1")
	for _, test := range []struct {
		name string
		c    Config
		says []string // none: the configuration is valid
	}{
		{"nothing", Config{}, []string{`Hosts: "0" log hosts: must be 3 or 5`}},
		{"three", Config{Hosts: three()}, nil},
		{"one", Config{Hosts: three()[:1]}, nil},
		{"two", Config{Hosts: three()[:2]}, []string{`Hosts: "2" log hosts: must be 3 or 5 (1 for development)`}},
		{"twice the same", Config{Hosts: append(three()[:2], Host{"a", "127.0.0.1:7401"})},
			[]string{`Hosts: id: "a" occurs twice`, `Hosts: address of a: "127.0.0.1:7401" is also that of a`}},
		{"bad hosts", Config{Hosts: []Host{{"", "127.0.0.1"}, {"b c", "127.0.0.1:0"}, {"c", ":7403"}}}, []string{
			`Hosts: id: "" must be 1 to 64`, `address of : "127.0.0.1" must be host:port`, "missing port", `Hosts: id: "b c"`,
			`"127.0.0.1:0" must be host:port: port "0" is not between 1 and 65535`, `address of c: ":7403" must name a machine`}},
		{"everywhere", Config{Insecure: true, Hosts: append(three()[:2], Host{"c", "0.0.0.0:7403"})}, []string{"must name a machine"}},
		{"not loopback", Config{Hosts: append(three()[:2], Host{"c", "10.0.0.1:7403"})},
			[]string{`Hosts: address of c: "10.0.0.1:7403" is not a loopback address: set TLS, or Insecure`}},
		{"not loopback, insecure", Config{Insecure: true, Hosts: append(three()[:2], Host{"c", "10.0.0.1:7403"})}, nil},
		{"not loopback, TLS", Config{TLS: files, Hosts: append(three()[:2], Host{"c", "10.0.0.1:7403"}), Self: "c"}, nil},
		{"a name is not loopback", Config{Hosts: append(three()[:2], Host{"c", "c.example:7403"})}, []string{"is not a loopback address"}},
		{"self of nobody", Config{Hosts: three(), Self: "d"}, []string{`Self: "d" is not the id of a host of the list`}},
		{"listening for nobody", Config{Hosts: three(), Listen: "x"}, []string{`Listen: "x" needs Self`, `Listen: "x" must be host:port`}},
		{"no files", Config{Hosts: three(), TLS: &TLS{}}, []string{"CertFile, KeyFile and CAFile are all needed"}},
		{"a file that is none", Config{Hosts: three(), TLS: &TLS{CertFile: "/nowhere", KeyFile: files.KeyFile, CAFile: files.CAFile}},
			[]string{`TLS: "/nowhere" cannot be used`, "no such file"}},
		{"a certificate for elsewhere", Config{Hosts: three(), Self: "a", TLS: files}, []string{"is not for 127.0.0.1, where the list has a"}},
		{"two lists", Config{Hosts: three(), Discover: "x", Size: 2}, []string{
			`Discover: "x" takes the place of Hosts`, `Size: "2" must be 3 or 5`, `TLS: "" is needed if the list comes from DNS`}},
		{"next", Config{Hosts: three(), Next: []Host{three()[2], {"d", "127.0.0.1:7404"}, {"e", "127.0.0.1:7405"}}, Self: "e"}, nil},
		{"next is the same", Config{Hosts: three(), Next: three()}, []string{`Next: "3" log hosts, those of Hosts`}},
		{"next with faults", Config{Hosts: three(), Next: []Host{{"a", "127.0.0.1:1"}, {"d", "127.0.0.1:7402"}}, Self: "x"}, []string{
			`Next: "2" log hosts: must be 3 or 5`, `Next: a: "127.0.0.1:1" has only its id or only its address in common with a (127.0.0.1:7401)`,
			`Next: d: "127.0.0.1:7402" has only its id`, `Self: "x" is not`}},
		{"next with too many", Config{Hosts: three(), Next: []Host{{"d", "127.0.0.1:1"}, {"e", "127.0.0.1:2"}, {"f", "127.0.0.1:3"}, {"g", "127.0.0.1:4"}, {"h", "127.0.0.1:5"}}},
			[]string{`Next: "8" different hosts in both lists: must be 7 at most`}},
		{"next and DNS", Config{Discover: "x", Size: 3, Insecure: true, Next: three()}, []string{`Discover: "x" has no Next`}},
		{"size of a list", Config{Hosts: three(), Size: 3}, []string{`Size: "3" is for Discover`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.c.check()
			if len(test.says) == 0 {
				require.NoError(t, err)
				return
			}
			for _, says := range test.says {
				assert.ErrorContains(t, err, says)
			}
		})
	}
}

// New reports the faults of neli.Config and of Config together, each once.
func TestNewNamesTheFaultsOfBothConfigurations(t *testing.T) {
	for roles, faults := range map[int]int{-1: 3, 1: 2} {
		_, err := neli.New(neli.Config{LeaderGroupID: "test", Roles: roles, Provider: Provider(Config{Hosts: three()[:2], Self: "d"})})
		require.ErrorContains(t, err, "neli: invalid configuration:\n")
		assert.ErrorContains(t, err, `Hosts: "2" log hosts`)
		assert.ErrorContains(t, err, `Self: "d" is not the id`)
		assert.Equal(t, roles < 0, strings.Contains(err.Error(), "Roles: "))
		assert.Equal(t, faults, strings.Count(err.Error(), "\n"), err)
	}
	_, err := neli.New(neli.Config{LeaderGroupID: "test", Roles: -1, Provider: Provider(Config{Hosts: three()})})
	require.ErrorContains(t, err, "Roles: ")
}

func TestSeparateHostNeedsMoreConfiguration(t *testing.T) {
	err := ListenAndServe(t.Context(), Config{Hosts: three()[:2], HeartbeatTimeout: time.Hour, MaxClockDrift: 1})
	for _, says := range []string{`Self: "" is needed`, `Group: "" must be 1 to 255 bytes`, `HeartbeatTimeout: "1h0m0s" must be between 100ms and 1m0s`,
		`MaxClockDrift: "1" must be a fraction`, `Hosts: "2" log hosts`} {
		assert.ErrorContains(t, err, says)
	}
	err = ListenAndServe(t.Context(), Config{Hosts: three()[:2], Self: "a", Group: "\xff"})
	require.ErrorContains(t, err, "must be 1 to 255 bytes of UTF-8")
}

// The end of the context is no error, whatever a host is waiting for.
func TestHostEndsWithItsContext(t *testing.T) {
	t.Run("waiting for the list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := Config{Discover: "neli.default.svc.cluster.local", Size: 3, Insecure: true, Self: "neli-0", Group: "test"}
			c.dns = fakeDNS{err: &net.DNSError{Err: "no such host", Name: c.Discover, IsNotFound: true}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, ListenAndServe(ctx, c))
			require.Error(t, ctx.Err())
		})
	})
	t.Run("before it listens", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		hosts := Hosts(t, 1)
		_, port, err := net.SplitHostPort(hosts[0].Address)
		require.NoError(t, err)
		require.NoError(t, ListenAndServe(ctx, Config{Hosts: hosts, Self: "a", Group: "test", Listen: "localhost:" + port}))
	})
}

func TestOneLogHostIsForDevelopment(t *testing.T) {
	m := join(t, Config{Hosts: Hosts(t, 1), Self: "a", HeartbeatTimeout: testTimeout})
	m.begun(t)
	m.journal.await(t, "only one log host: for development; nobody leads while it is down")
}

// fakeDNS answers one question after the other. The last answer is repeated.
type fakeDNS struct {
	answers *[][]*net.SRV
	ips     []netip.Addr
	err     error
}

func (f fakeDNS) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	if f.err != nil {
		return "", nil, f.err
	}
	all := *f.answers
	if len(all) > 1 {
		*f.answers = all[1:]
	}
	return "_" + service + "._" + proto + "." + name, all[0], nil
}

func (f fakeDNS) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return f.ips, f.err
}

func pods(names ...string) (all []*net.SRV) {
	for _, n := range names {
		all = append(all, &net.SRV{Target: n + ".neli.default.svc.cluster.local.", Port: 7400})
	}
	return all
}

// settle finds the list and makes the settings, as a start does.
func settle(ctx context.Context, c Config, log *slog.Logger) (*settings, error) {
	c, err := c.discovered(ctx, log)
	if err != nil {
		return nil, err
	}
	return c.settle(agreement{}, "", log)
}

func TestTheListFromDNS(t *testing.T) {
	whole := Config{Discover: "neli.default.svc.cluster.local", Size: 3, Insecure: true}
	t.Run("waits until it is whole", func(t *testing.T) {
		journal, logger := newJournal()
		c := whole
		c.dns = fakeDNS{answers: &[][]*net.SRV{pods("neli-0"), pods("neli-2", "neli-0", "neli-1")}}
		s, err := settle(t.Context(), c, logger)
		require.NoError(t, err)
		assert.Equal(t, []Host{
			{"neli-0", "neli-0.neli.default.svc.cluster.local:7400"},
			{"neli-1", "neli-1.neli.default.svc.cluster.local:7400"},
			{"neli-2", "neli-2.neli.default.svc.cluster.local:7400"},
		}, s.agreed.hosts)
		assert.Contains(t, journal.String(), "1 of 3 log hosts so far")
	})
	t.Run("a record that is repeated", func(t *testing.T) {
		_, logger := newJournal()
		c := whole
		c.dns = fakeDNS{answers: &[][]*net.SRV{pods("neli-0", "neli-1", "neli-0"), pods("neli-0", "neli-1", "neli-2", "neli-1")}}
		s, err := settle(t.Context(), c, logger)
		require.NoError(t, err)
		require.Len(t, s.agreed.hosts, 3)
	})
	t.Run("more than there should be", func(t *testing.T) {
		_, logger := newJournal()
		c := whole
		c.dns = fakeDNS{answers: &[][]*net.SRV{pods("neli-0", "neli-1", "neli-2", "neli-3")}}
		_, err := settle(t.Context(), c, logger)
		require.ErrorContains(t, err, "4 log hosts, and Size is 3")
	})
	t.Run("ends with its context", func(t *testing.T) {
		_, logger := newJournal()
		c := whole
		c.dns = fakeDNS{err: &net.DNSError{Err: "no such host", Name: c.Discover, IsNotFound: true}}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := settle(ctx, c, logger)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, c.Discover)
	})
	t.Run("self is not in it", func(t *testing.T) {
		_, logger := newJournal()
		c := whole
		c.Self = "neli-7"
		c.dns = fakeDNS{answers: &[][]*net.SRV{pods("neli-0", "neli-1", "neli-2")}}
		_, err := settle(t.Context(), c, logger)
		require.ErrorContains(t, err, `Self: "neli-7" is not the id of a host`)
	})
}

// A hosts file may have the same line twice, and Go's resolver then returns the address twice.
func TestAnAddressThatIsRepeatedIsOneMachine(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that nothing is dialled
	ips := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::ffff:127.0.0.1")}
	c := Config{dns: fakeDNS{ips: ips}}
	_, err := c.dial(ctx, "one.invalid:7400")
	require.ErrorIs(t, err, context.Canceled)
}

func TestANameOfSeveralMachinesIsRefused(t *testing.T) {
	for _, addresses := range []string{"127.0.0.1 127.0.0.2", "fd00::1 fd00::2 127.0.0.1"} {
		var ips []netip.Addr
		for ip := range strings.FieldsSeq(addresses) {
			ips = append(ips, netip.MustParseAddr(ip))
		}
		c := Config{dns: fakeDNS{ips: ips}}
		_, err := c.dial(t.Context(), "two.example:7400")
		require.ErrorIs(t, err, errSeveral)
		require.ErrorContains(t, err, "two.example stands for")
	}
}
