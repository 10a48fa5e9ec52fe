package compare

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/goneli/neli/peers/internal/wire"
)

// value is a beat's size.
var value = make([]byte, 200)

func listen(b *testing.B) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	return l
}

// measure times round trips, and reports the median and the 99th percentile. Between two of
// them is a pause, as between beats: what is awake answers faster than what is not.
func measure(b *testing.B, pause time.Duration, trip func() error) {
	require.NoError(b, trip())
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		require.NoError(b, trip())
		took = append(took, time.Since(began))
		if pause > 0 {
			b.StopTimer()
			<-time.After(pause)
			b.StartTimer()
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

func both(b *testing.B, trip func() error) {
	b.Run("busy", func(b *testing.B) { measure(b, 0, trip) })
	b.Run("idle", func(b *testing.B) { measure(b, time.Millisecond, trip) })
}

func request() *wire.ToHost {
	return &wire.ToHost{Kind: &wire.ToHost_Append{Append: &wire.Append{Seq: 1, Value: value}}}
}

func response(m *wire.ToHost) *wire.FromHost {
	return &wire.FromHost{Kind: &wire.FromHost_Record{Record: &wire.Record{Seq: m.GetAppend().GetSeq(), Value: m.GetAppend().GetValue()}}}
}

type echo struct {
	wire.UnimplementedSmallLogServer
}

func (echo) Follow(s grpc.BidiStreamingServer[wire.ToHost, wire.FromHost]) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return err
		}
		if err := s.Send(response(m)); err != nil {
			return err
		}
	}
}

func BenchmarkGRPC(b *testing.B) {
	l := listen(b)
	server := grpc.NewServer()
	wire.RegisterSmallLogServer(server, echo{})
	go server.Serve(l)
	defer server.Stop()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(b, err)
	defer conn.Close()
	s, err := wire.NewSmallLogClient(conn).Follow(b.Context())
	require.NoError(b, err)
	both(b, func() error {
		if err := s.Send(request()); err != nil {
			return err
		}
		_, err := s.Recv()
		return err
	})
}

// h2c is HTTP/2 without TLS.
func h2c() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

func serve(b *testing.B, h http.Handler) (url string) {
	l := listen(b)
	server := &http.Server{Handler: h, Protocols: h2c()}
	go server.Serve(l)
	b.Cleanup(func() { server.Close() })
	return "http://" + l.Addr().String()
}

func BenchmarkConnect(b *testing.B) {
	url := serve(b, connect.NewBidiStreamHandler("/follow", func(_ context.Context, s *connect.BidiStream[wire.ToHost, wire.FromHost]) error {
		for {
			m, err := s.Receive()
			if err != nil {
				return err
			}
			if err := s.Send(response(m)); err != nil {
				return err
			}
		}
	}))
	client := &http.Client{Transport: &http.Transport{Protocols: h2c()}}
	defer client.CloseIdleConnections()
	s := connect.NewClient[wire.ToHost, wire.FromHost](client, url+"/follow").CallBidiStream(b.Context())
	defer s.CloseRequest()
	both(b, func() error {
		if err := s.Send(request()); err != nil {
			return err
		}
		_, err := s.Receive()
		return err
	})
}

// message is what JSON would have in place of the wire's.
type message struct {
	Seq   uint64 `json:"seq"`
	Value []byte `json:"value"`
}

func BenchmarkHTTPWithJSON(b *testing.B) {
	url := serve(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_ = c.Flush() // what fails here fails below
		in, out := json.NewDecoder(r.Body), json.NewEncoder(w)
		for {
			var m message
			if in.Decode(&m) != nil || out.Encode(m) != nil || c.Flush() != nil {
				return
			}
		}
	}))
	body, to := io.Pipe()
	defer to.Close()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, body)
	require.NoError(b, err)
	client := &http.Client{Transport: &http.Transport{Protocols: h2c()}}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	require.NoError(b, err)
	defer res.Body.Close()
	in, out := json.NewDecoder(res.Body), json.NewEncoder(to)
	both(b, func() error {
		if err := out.Encode(message{1, value}); err != nil {
			return err
		}
		var m message
		return in.Decode(&m)
	})
}
