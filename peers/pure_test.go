package peers

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/peers/internal/wire"
	"github.com/goneli/neli/peers/smalllog"
)

func TestEveryDifferenceIsNamed(t *testing.T) {
	here := agreement{group: "g", timeout: time.Second, drift: defaultDrift, hosts: three()}
	require.Empty(t, here.differences(here.message("a")))
	for name, there := range map[string]agreement{
		"group":             {"h", time.Second, defaultDrift, three(), nil},
		"HeartbeatTimeout":  {"g", 2 * time.Second, defaultDrift, three(), nil},
		"MaxClockDrift":     {"g", time.Second, 0.1, three(), nil},
		"list of log hosts": {"g", time.Second, defaultDrift, three()[:1], nil},
	} {
		d := here.differences(there.message("a"))
		require.Len(t, d, 1, "the difference in %s is missed", name)
		assert.Contains(t, d[0], name)
	}
	everything := (agreement{"h", 2 * time.Second, 0.1, nil, nil}).message("a")
	assert.Len(t, here.differences(everything), 4)
	everything.Version = 2
	assert.Equal(t, []string{"protocol version: 1 here, 2 there"}, here.differences(everything))
}

func TestHostAnswersOnlyToItsOwnName(t *testing.T) {
	h := testHost()
	require.NoError(t, h.agrees(h.agreed.message("a"), "m"))
	err := h.agrees(h.agreed.message("b"), "m")
	require.Equal(t, codes.FailedPrecondition, status.Code(err), "b was wanted, and a has answered")
	require.ErrorContains(t, err, `log host: "a" here, "b" wanted`)
}

func TestCertificatesThatMayConnect(t *testing.T) {
	ca := newAuthority(t)
	own := ca.issue(t, "127.0.0.1")
	own.Members = []string{"invoicing"}
	k, err := newKeys(*own)
	require.NoError(t, err)
	for _, c := range []struct {
		names []string
		may   bool
	}{
		{[]string{"127.0.0.1"}, true},
		{[]string{"other", "invoicing"}, true},
		{[]string{"shipping"}, false},
		{[]string{"127.0.0.2"}, false},
		{[]string{"invoicing.example"}, false},
		{nil, false},
	} {
		theirs, err := newKeys(*ca.issue(t, c.names...))
		require.NoError(t, err)
		assert.Equal(t, c.may, k.admits(theirs.leaf(), three()) == nil, "whether %v may connect", c.names)
	}
}

// A handshake may still use a certificate while another handshake reads newer files.
func TestCertificateInUseIsNotChanged(t *testing.T) {
	ca := newAuthority(t)
	files := ca.issue(t, "before")
	k, err := newKeys(*files)
	require.NoError(t, err)
	used, _ := k.current()
	ca.renew(t, files, "a name that makes it longer")
	require.Equal(t, []string{"a name that makes it longer"}, names(k.leaf()))
	require.Equal(t, []string{"before"}, names(used.Leaf), "reading the files again changes a certificate that is in use")
}

// TestAnotherIncarnationIsAReset lets a log come back empty before anything of it was read. The
// offset is the same, but nothing else is.
func TestAnotherIncarnationIsAReset(t *testing.T) {
	var entries []kafka.LogEntry
	var id smalllog.ID
	l := &link{to: Host{"a", "127.0.0.1:1"}, settings: &settings{agreed: agreement{timeout: testTimeout}}, next: -1,
		logger: slog.New(slog.DiscardHandler),
		open: func(context.Context) (clientStream, func(), error) {
			return &lyingHost{[]*wire.FromHost{{Kind: &wire.FromHost_Begin{Begin: &wire.Begin{Incarnation: id[:]}}}}}, func() {}, nil
		},
		emit: func(_ context.Context, e kafka.LogEntry) bool {
			entries = append(entries, e)
			return true
		}}
	for _, n := range []byte{1, 1, 2} {
		id = smalllog.ID{n}
		require.Error(t, l.session(t.Context()))
	}
	var kinds []kafka.LogEntryKind
	for _, e := range entries {
		kinds = append(kinds, e.Kind)
	}
	assert.Equal(t, []kafka.LogEntryKind{kafka.LogReset, kafka.LogAlive, kafka.LogReset}, kinds, "the incarnations that were reported")
}

// sender notes what is sent.
type sender struct{ sent chan *wire.ToHost }

func (s sender) Send(m *wire.ToHost) error {
	s.sent <- m
	return nil
}

func (s sender) Recv() (*wire.FromHost, error) { select {} }

func TestRecordThatWaitedTooLongIsNotSent(t *testing.T) {
	c := newConnection(&wire.Begin{Incarnation: make([]byte, 16)}, time.Minute)
	reports := make(chan error, 2)
	old := &outgoing{value: []byte("old"), at: time.Now().Add(-time.Second), report: func(err error) { reports <- err }}
	young := &outgoing{value: []byte("young"), at: time.Now().Add(time.Hour), report: func(err error) { reports <- err }}
	require.NoError(t, c.enqueue(old))
	require.NoError(t, c.enqueue(young))
	ctx, cancel := context.WithCancel(t.Context())
	s := sender{make(chan *wire.ToHost, 2)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.send(ctx, s, time.Second/2)
	}()
	require.Equal(t, "young", string((<-s.sent).GetAppend().GetValue()), "the record sent first")
	require.ErrorIs(t, <-reports, errLate)
	cancel()
	<-done
	c.fail(errDown)
	require.ErrorIs(t, <-reports, errDown)
	require.ErrorIs(t, c.enqueue(young), errDown)
}

func TestFullQueueIsReported(t *testing.T) {
	c := newConnection(&wire.Begin{Incarnation: make([]byte, 16)}, time.Minute)
	for range maxQueue {
		require.NoError(t, c.enqueue(&outgoing{report: func(error) {}}))
	}
	require.ErrorIs(t, c.enqueue(&outgoing{}), errFull)
	c.fail(errDown)
}
