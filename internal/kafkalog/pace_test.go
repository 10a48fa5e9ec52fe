package kafkalog

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli/kafka"
	"github.com/stretchr/testify/require"
)

func TestTimeoutsFollowTAndRoundTrips(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		t, trip                               time.Duration
		late                                  int
		request, connection, first, questions time.Duration
	}{
		{300 * ms, 0, 0, 2000 * ms, 3000 * ms, 3000 * ms, 10_000 * ms},
		{5000 * ms, 0, 0, 2000 * ms, 3000 * ms, 3000 * ms, 10_000 * ms},
		{10_000 * ms, 0, 0, 4000 * ms, 6000 * ms, 3000 * ms, 10_000 * ms},
		{60_000 * ms, 0, 0, 6000 * ms, 9000 * ms, 3000 * ms, 10_000 * ms},
		// No broker has answered.
		{5000 * ms, 0, 1, 2000 * ms, 6000 * ms, 6000 * ms, 10_000 * ms},
		{5000 * ms, 0, 2, 2000 * ms, 12_000 * ms, 10_000 * ms, 10_000 * ms},
		{60_000 * ms, 0, 3, 6000 * ms, 15_000 * ms, 10_000 * ms, 10_000 * ms},
		// Near brokers do not shorten any timeout.
		{5000 * ms, 2 * ms, 0, 2000 * ms, 3000 * ms, 3000 * ms, 10_000 * ms},
		{5000 * ms, 200 * ms, 3, 2000 * ms, 3000 * ms, 10_000 * ms, 10_000 * ms},
		// Far brokers.
		{5000 * ms, 400 * ms, 0, 2000 * ms, 4000 * ms, 3000 * ms, 10_000 * ms},
		{10_000 * ms, 500 * ms, 0, 4000 * ms, 6000 * ms, 3000 * ms, 10_000 * ms},
		{5000 * ms, 900 * ms, 0, 3600 * ms, 9000 * ms, 3000 * ms, 18_000 * ms},
		{60_000 * ms, 30_000 * ms, 0, 10_000 * ms, 20_000 * ms, 3000 * ms, 20_000 * ms},
	} {
		require.Equal(t, Timeouts{tc.request, tc.connection, tc.first, tc.questions}, timeoutsFor(tc.t, tc.trip, tc.late),
			"T = %v, round trip %v, %d late", tc.t, tc.trip, tc.late)
	}
}

// The shortest round trip of the last minute counts. So neither a broker's crash nor a slow start
// changes the timeouts, but brokers that have become far away do.
func TestShortestRoundTripCounts(t *testing.T) {
	var p Pace
	at := time.Unix(1000, 0)
	far := func() time.Duration { return p.Timeouts(5*time.Second).Request / 4 }
	require.Equal(t, 500*time.Millisecond, far(), "T's own")
	p.Note(2*time.Second, at)
	require.Equal(t, 2*time.Second, far())
	p.Note(900*time.Millisecond, at.Add(time.Second))
	require.Equal(t, 900*time.Millisecond, far())
	for i := range 20 { // a stall
		p.Note(8*time.Second, at.Add(time.Duration(20+i)*time.Second))
	}
	require.Equal(t, 900*time.Millisecond, far())
	p.Note(1500*time.Millisecond, at.Add(40*time.Second))
	p.Note(1500*time.Millisecond, at.Add(61*time.Second))
	require.Equal(t, 1500*time.Millisecond, far(), "after a minute")
	p.Note(600*time.Millisecond, at.Add(time.Hour))
	require.Equal(t, 600*time.Millisecond, far(), "at once")
}

// Late questions count until the first answer.
func TestLateQuestionsCountUntilTheFirstAnswer(t *testing.T) {
	var p Pace
	for range 9 {
		p.noteLate()
	}
	require.Equal(t, 15*time.Second, p.Timeouts(5*time.Second).Connection)
	p.Note(time.Millisecond, time.Unix(1000, 0))
	p.noteLate()
	require.Equal(t, 3*time.Second, p.Timeouts(5*time.Second).Connection)
}

// farAdmin answers after a second.
type farAdmin struct{ fakeAdmin }

func (farAdmin) Topic(ctx context.Context, name string) (kafka.TopicInfo, error) {
	time.Sleep(time.Second)
	return fakeAdmin{}.Topic(ctx, name)
}

// farProvider makes producers that acknowledge at once, and farAdmins.
type farProvider struct {
	fakeProvider
	given []map[string]string // properties of each producer
}

func (f *farProvider) Producer(props map[string]string, log *slog.Logger) (kafka.Producer, error) {
	f.given = append(f.given, props)
	return f.fakeProvider.Producer(props, log)
}

func (f *farProvider) Admin(kafka.Producer) (kafka.Admin, error) { return farAdmin{}, nil }

// Answers and acknowledgements are measured, and determine the timeouts of the next questions and the next client.
func TestAnswersAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, h := &farProvider{}, new(Health)
		pace := &h.Pace
		props := func() map[string]string {
			return map[string]string{"request": pace.Timeouts(time.Second).Request.String()}
		}
		l, err := newLastingProducer(k, props, pace, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		topic := &Topic{name: "t", Admin: lastingAdmin{l}, log: l.log, T: time.Second, health: h}
		topic.Access.OK()
		limit := func() (limit time.Duration) {
			require.NoError(t, topic.attempt(t.Context(), func(ctx context.Context) error {
				deadline, _ := ctx.Deadline()
				limit = time.Until(deadline)
				return nil
			}))
			return limit
		}
		require.Equal(t, 10*time.Second, limit())
		_, err = topic.Admin.Topic(t.Context(), "t")
		require.NoError(t, err)
		require.Equal(t, 20*time.Second, limit(), "twenty round trips")

		first := k.producers[0]
		first.mu.Lock()
		first.dead = kafka.ErrClientFatal
		first.mu.Unlock()
		require.ErrorIs(t, l.Append("t", 0, nil, func(error) {}), kafka.ErrClientFatal)
		time.Sleep(replaceEvery)
		synctest.Wait()
		require.Equal(t, []map[string]string{{"request": "2s"}, {"request": "4s"}}, k.given)

		first = k.producers[1]
		first.mu.Lock()
		first.silent = true
		first.mu.Unlock()
		acknowledged := make(chan error, 1)
		require.NoError(t, l.Append("t", 0, nil, func(err error) { acknowledged <- err }))
		time.Sleep(700 * time.Millisecond)
		first.mu.Lock()
		first.held[0](nil)
		first.held = nil
		first.mu.Unlock()
		require.NoError(t, <-acknowledged)
		require.Equal(t, 14*time.Second, limit())
		lastingAdmin{l}.Close()
		require.NoError(t, l.Close())
	})
}
