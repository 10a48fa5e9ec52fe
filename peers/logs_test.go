package peers

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/peers/internal/wire"
	"github.com/goneli/neli/peers/smalllog"
)

// crowd lets each member append to each log, and checks that all read the same records.
func crowd(t *testing.T, members []*member) {
	t.Helper()
	const each = 30
	for _, m := range members {
		m.begun(t)
	}
	var work sync.WaitGroup
	for i, m := range members {
		work.Go(func() {
			for n := range each {
				for log := range m.logs {
					assert.NoError(t, m.sure(log, fmt.Sprintf("%d/%d/%d", i, log, n), 0))
				}
			}
		})
	}
	work.Wait()
	for log := range members[0].logs {
		var all []string
		for i, m := range members {
			m.await(t, "everything is read", func(logs []view) bool { return len(logs[log].records) == each*len(members) })
			v := m.view(log)
			assert.Equal(t, 1, v.resets, "a reader had to begin again")
			if i == 0 {
				all = v.records
			}
			assert.Equal(t, all, v.records, "members read log %d in different orders", log)
		}
		for i := range members {
			own := slices.DeleteFunc(slices.Clone(all), func(r string) bool { return r[0] != byte('0'+i) })
			for n, r := range own {
				assert.Equal(t, fmt.Sprintf("%d/%d/%d", i, log, n), r, "not in the order of sending")
			}
		}
	}
}

func TestMembersThatHostNoLogs(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d hosts, TLS %v", n, secure), func(t *testing.T) {
				c := Config{Hosts: Hosts(t, n), HeartbeatTimeout: testTimeout}
				if secure {
					c.TLS = newAuthority(t).issue(t, "127.0.0.1")
				}
				startHosts(t, c)
				crowd(t, []*member{join(t, c), join(t, c), join(t, c)})
			})
		}
	}
}

func TestMembersThatHostTheLogs(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := Config{Hosts: Hosts(t, n), HeartbeatTimeout: testTimeout}
			members := []*member{join(t, c)}
			for _, h := range c.Hosts {
				own := c
				own.Self = h.ID
				members = append(members, join(t, own))
			}
			crowd(t, members)
		})
	}
}

// Accept may fail for good, say because the system has no memory for another connection. Members that are
// connected notice nothing, and nobody else can connect any more.
func TestMemberReportsThatItsHostStoppedListening(t *testing.T) {
	c := Config{Hosts: Hosts(t, 1), Self: "a", HeartbeatTimeout: testTimeout}
	j, logger := newJournal()
	set, err := newLogSet(t.Context(), c, kafka.LogSettings{Group: "test", HeartbeatTimeout: testTimeout, MaxClockDrift: defaultDrift, Logger: logger})
	require.NoError(t, err)
	require.NoError(t, set.server.listen.Close())
	j.await(t, "log host has stopped listening")
	require.ErrorContains(t, set.Close(), "accept")
}

func TestASlowSubscriberIsCutOffAndBeginsAnew(t *testing.T) {
	c := Config{Hosts: Hosts(t, 1), HeartbeatTimeout: testTimeout}
	host := startHosts(t, c)["a"]
	slow := join(t, c)
	slow.begun(t)
	slow.mu.Lock() // it reads nothing more
	m := join(t, c)
	m.begun(t)
	value := string(make([]byte, smalllog.MaxValue))
	most := smalllog.DefaultLimits.Bytes/len(value) + maxEntries + window/len(value)
	for range most + 50 {
		m.mustAppend(t, 0, value)
	}
	host.journal.await(t, "subscriber reads too slowly: cut off")
	slow.mu.Unlock()
	slow.await(t, "it begins anew", func(logs []view) bool { return logs[0].resets == 2 })
	assert.Positive(t, slow.view(0).from, "does not know that there is a gap")
	m.mustAppend(t, 0, "last")
	slow.await(t, "it reads on", func(logs []view) bool {
		r := logs[0].records
		return len(r) > 0 && r[len(r)-1] == "last"
	})
	assert.Equal(t, 1, m.view(0).resets, "a reader that keeps up began again")
}

func TestInvalidAppendsAreRefused(t *testing.T) {
	c := Config{Hosts: Hosts(t, 1), HeartbeatTimeout: testTimeout}
	startHosts(t, c)
	m := join(t, c)
	m.begun(t)
	require.ErrorContains(t, m.sure(0, string(make([]byte, smalllog.MaxValue+1)), 0), "record too large")
	require.ErrorContains(t, m.set.Append(1, "", nil, 0, nil), "log 1 of 1")
	m.mustAppend(t, 0, "x")
	assert.Equal(t, 1, m.view(0).resets)
}

func TestAppendFailsWithoutAConnection(t *testing.T) {
	m := join(t, Config{Hosts: Hosts(t, 3), HeartbeatTimeout: testTimeout})
	_, err := m.append(0, "x")
	require.ErrorIs(t, err, errDown)
	for _, id := range []string{"a", "b", "c"} {
		m.journal.await(t, `msg="log host cannot be reached, retrying" host=`+id)
	}
	require.Contains(t, m.journal.String(), "connection refused")
}

// TestMembersTakeTheListFromDNS starts three members with a log each. They find each other by
// names that only their DNS and their Dial know.
func TestMembersTakeTheListFromDNS(t *testing.T) {
	addresses := map[string]string{}
	var whole []*net.SRV
	for i, h := range Hosts(t, 3) {
		target := fmt.Sprintf("neli-%d.neli.test.", i)
		whole = append(whole, &net.SRV{Target: target, Port: 7400})
		addresses[fmt.Sprintf("neli-%d.neli.test:7400", i)] = h.Address
	}
	c := Config{Discover: "neli.test", Size: 3, Insecure: true, HeartbeatTimeout: testTimeout,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, addresses[address])
		}}
	var members []*member
	for i := range 3 {
		own := c
		own.Self, own.Listen = fmt.Sprintf("neli-%d", i), addresses[fmt.Sprintf("neli-%d.neli.test:7400", i)]
		own.dns = fakeDNS{answers: &[][]*net.SRV{whole[:i], whole}}
		m := join(t, own)
		assert.Equal(t, 3, m.set.Logs(), "the number of logs is not known before the list is")
		members = append(members, m)
	}
	crowd(t, members)
}

func TestWrongListFromDNSIsAFinalError(t *testing.T) {
	c := Config{Discover: "neli.test", Size: 3, Insecure: true, Self: "neli-7", HeartbeatTimeout: testTimeout,
		dns: fakeDNS{answers: &[][]*net.SRV{pods("neli-0", "neli-1", "neli-2")}}}
	m := join(t, c)
	require.ErrorContains(t, m.final(t), `Self: "neli-7" is not the id of a host of the list`)
	_, err := m.append(0, "x")
	require.ErrorIs(t, err, errDown)
}

func TestCloseWhileWaitingForTheList(t *testing.T) {
	m := join(t, Config{Discover: "neli.test", Size: 3, Insecure: true, HeartbeatTimeout: testTimeout,
		dns: fakeDNS{answers: &[][]*net.SRV{nil}}})
	m.journal.await(t, "waiting for the list of log hosts")
	m.leave(t)
	require.NoError(t, m.set.Close(), "closing twice is an error")
}

// The receiver of a record owns its value (kafka.LogEntry), so a change of it must not reach the
// log, from which others read.
func TestRecordIsNotSharedWithTheHostsOwnMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost()
		id := h.store.ID()
		open := func() *pipe {
			p := openPipe(t.Context(), h)
			require.NoError(t, p.Send(hello(h)))
			m, err := p.Recv()
			require.NoError(t, err)
			require.NotNil(t, m.GetBegin())
			return p
		}
		read := func(p *pipe) []byte {
			m, err := p.Recv()
			require.NoError(t, err)
			return m.GetRecord().GetValue()
		}
		p := open()
		record := &wire.Append{Seq: 1, Incarnation: id[:], Value: []byte("as it was")}
		require.NoError(t, p.Send(&wire.ToHost{Kind: &wire.ToHost_Append{Append: record}}))
		copy(read(p), "not at all")
		require.Equal(t, "as it was", string(read(open())))
	})
}
