package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

func TestASuspendedMemberServesNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := nelitest.NewBroker(nelitest.Options{})
		defer broker.Close()
		in, commands := io.Pipe()
		ended := make(chan error)
		var out strings.Builder
		m := &member{out: &out}
		cfg := neli.Config{Provider: broker.Provider("a"), LeaderGroupID: "shards", Name: "a", Roles: count}
		go func() { ended <- m.run(context.Background(), cfg, false, in) }()
		answers := func() string {
			fmt.Fprintln(commands, "requests 1", time.Now().UnixNano())
			synctest.Wait()
			m.mu.Lock()
			defer m.mu.Unlock()
			return strings.Fields(out.String()[strings.LastIndex(out.String(), "answered"):])[2]
		}
		time.Sleep(10 * time.Second)
		require.Equal(t, strings.Repeat("!", count), answers())
		broker.Freeze("a") // its program runs before its library does
		time.Sleep(10 * time.Second)
		require.Equal(t, strings.Repeat(".", count), answers())
		broker.Resume("a")
		require.NoError(t, commands.Close())
		require.NoError(t, <-ended)
	})
}

func TestASceneWhoseMembersEndIsAnError(t *testing.T) {
	err := play(t.Context(), "alone", pace{}, []string{"-test.run", "^$", "--"}) // this program, without tests
	require.ErrorContains(t, err, "alone: member ")
	require.ErrorContains(t, err, " has ended: ")
}

func TestASceneWithoutShardsEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("too long"))
	defer stop()
	require.EqualError(t, (&scene{}).await(ctx, nil), "too long")
}

// Each shard's process keeps it twice. After the third try another process has it.
func TestAMoveThatFailsIsTriedAgain(t *testing.T) {
	s := &scene{}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	says := make([]*io.PipeWriter, len(s.inputs))
	for who := range s.inputs {
		commands, in := io.Pipe()
		out, says1 := io.Pipe()
		s.inputs[who], says[who] = in, says1
		go s.hear(who, out)
		go func() {
			for tries, lines := map[int]int{}, bufio.NewScanner(commands); lines.Scan(); {
				var shard int
				var to string
				_, err := fmt.Sscanf(lines.Text(), "move %d %s", &shard, &to)
				if err != nil {
					continue
				}
				tries[shard]++
				now := time.Now().UnixNano()
				fmt.Fprintln(says1, "left", shard, now)
				if tries[shard] <= 2 {
					fmt.Fprintln(says1, "serves", shard, now+1)
				} else {
					fmt.Fprintln(says[to[0]-'a'], "serves", shard, now+1)
				}
				fmt.Fprintln(says1, "tried", shard)
			}
		}()
	}
	for shard := range count {
		fmt.Fprintln(says[shard%2], "serves", shard, time.Now().UnixNano())
	}
	require.NoError(t, s.await(ctx, func(int, int) bool { return true }))
	began := time.Now().UnixNano()
	require.NoError(t, s.move(ctx))
	for shard, stints := range s.stints {
		require.Equal(t, shard%2+1, stints[len(stints)-1].who)
	}
	require.Regexp(t, "^192 changes, ", s.gaps(began))
}
