package peers

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/goneli/neli/peers/internal/wire"
	"github.com/goneli/neli/peers/smalllog"
)

// script is a client that sends given messages and accepts everything.
type script struct {
	ctx  context.Context
	said []*wire.ToHost
	got  []*wire.FromHost
}

func (s *script) Context() context.Context { return s.ctx }

func (s *script) Recv() (*wire.ToHost, error) {
	if len(s.said) == 0 {
		return nil, io.EOF
	}
	m := s.said[0]
	s.said = s.said[1:]
	return m, nil
}

func (s *script) Send(m *wire.FromHost) error {
	s.got = append(s.got, m)
	return nil
}

// FuzzHost lets a client send arbitrary messages after a correct hello, or instead of it. The
// host must keep its promises, and go on serving others.
func FuzzHost(f *testing.F) {
	agreed := agreement{group: "g", timeout: testTimeout, hosts: []Host{{"a", "127.0.0.1:1"}}}
	id := smalllog.ID{1}
	seed := func(proper bool, m ...*wire.ToHost) {
		var all [][]byte
		for _, m := range m {
			raw, err := proto.Marshal(m)
			require.NoError(f, err)
			all = append(all, raw)
		}
		for len(all) < 2 {
			all = append(all, nil)
		}
		f.Add(proper, all[0], all[1])
	}
	seed(true, &wire.ToHost{Kind: &wire.ToHost_Append{Append: &wire.Append{Seq: 1, Incarnation: id[:], Value: []byte("x"), Ballot: 3}}})
	seed(true, &wire.ToHost{Kind: &wire.ToHost_Append{Append: &wire.Append{Seq: 1, Incarnation: id[:3], Ballot: -3}}})
	seed(false, &wire.ToHost{Kind: &wire.ToHost_Hello{Hello: &wire.Hello{Agreement: agreed.message("a"), Incarnation: id[:], From: -1}}})
	seed(false, &wire.ToHost{Kind: &wire.ToHost_Hello{Hello: &wire.Hello{Agreement: agreed.message("a"), Incarnation: id[:], From: 1 << 62}}})
	f.Fuzz(func(t *testing.T, proper bool, first, second []byte) {
		h := newHost(agreed.hosts[0], agreed, &top{}, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		s := &script{ctx: ctx}
		if proper {
			s.said = []*wire.ToHost{{Kind: &wire.ToHost_Hello{Hello: &wire.Hello{Agreement: agreed.message("a")}}}}
		}
		for _, raw := range [][]byte{first, second} {
			m := &wire.ToHost{}
			if proto.Unmarshal(raw, m) == nil {
				s.said = append(s.said, m)
			}
		}
		require.Error(t, h.follow(s), "no error, though the client has ended")
		cancel()
		h.work.Wait()
		for i, m := range s.got {
			require.Equal(t, i == 0, m.GetBegin() != nil, "begin is not the first message, or not the only one")
		}
		require.Empty(t, h.subscribers)
		_, err := h.store.Append(h.store.ID(), []byte("others"), 0)
		require.NoError(t, err)
	})
}
