package neli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestHandover(t *testing.T) {
	begin := instant{mono: time.Hour, wall: 2 * time.Hour}
	deadline := begin.add(10 * time.Second)
	const wait, drain = 4 * time.Second, 9 * time.Second
	fresh := handover{since: begin}
	asked := handover{since: begin, asked: true, deadline: deadline}
	done := handover{since: begin, asked: true, deadline: deadline, done: true}
	moved := handover{since: begin, why: ReasonTransferred}
	for _, c := range []struct {
		name  string
		h     handover
		after time.Duration
		scene scene
		want  verdict
		wake  time.Duration // after begin, given what advance left
	}{
		{"waits for a successor", fresh, 0, scene{told: true}, verdictStay, wait},
		{"until the wait is over", fresh, wait - 1, scene{told: true}, verdictStay, wait},
		{"then asks all the same", fresh, wait, scene{told: true}, verdictAsk, wait + drain},
		{"asks when a successor is ready", fresh, time.Second, scene{told: true, ready: true}, verdictAsk, time.Second + drain},
		{"asks at once when nobody works", fresh, 0, scene{told: true, idle: true}, verdictAsk, drain},
		{"is cancelled when wanted again", fresh, time.Second, scene{told: true, wanted: true}, verdictCancel, wait},
		{"is cancelled even when a successor is ready", fresh, time.Second, scene{told: true, wanted: true, ready: true}, verdictCancel, wait},
		{"releases what nobody was told of", fresh, 0, scene{}, verdictRelease, wait},
		{"is cancelled before what nobody was told of", fresh, 0, scene{wanted: true}, verdictCancel, wait},

		{"asks at once when nobody would take it", fresh, 0, scene{told: true, refused: true}, verdictAsk, drain},
		{"goes on though the partition could be kept", moved, wait - 1, scene{told: true, wanted: true}, verdictStay, wait},
		{"asks when who is meant is ready", moved, time.Second, scene{told: true, wanted: true, ready: true}, verdictAsk, time.Second + drain},
		{"even at the last moment", moved, wait, scene{told: true, wanted: true, ready: true}, verdictAsk, wait + drain},
		{"is called off when that would not", moved, time.Second, scene{told: true, wanted: true, refused: true}, verdictCancel, wait},
		{"is called off when that is silent", moved, wait, scene{told: true, wanted: true}, verdictCancel, wait},
		{"unless the partition is not wanted any more", moved, wait, scene{told: true}, verdictAsk, wait + drain},
		{"nor called off then", moved, time.Second, scene{told: true, refused: true}, verdictAsk, time.Second + drain},

		{"asks once", asked, time.Second, scene{told: true, ready: true}, verdictStay, 10 * time.Second},
		{"is not cancelled once asked", asked, time.Second, scene{told: true, wanted: true}, verdictStay, 10 * time.Second},
		{"does not release while work goes on", asked, 10*time.Second - 1, scene{told: true, ready: true, idle: true}, verdictStay, 10 * time.Second},
		{"is overdue at the deadline", asked, 10 * time.Second, scene{told: true, ready: true}, verdictOverdue, 10 * time.Second},
		{"is overdue with or without a successor", asked, 10 * time.Second, scene{told: true}, verdictOverdue, 10 * time.Second},
		{"releases when the application was told of the end", asked, time.Second, scene{}, verdictRelease, 10 * time.Second},

		{"releases when work is done, whoever is ready", done, time.Second, scene{told: true}, verdictRelease, 10 * time.Second},
		{"is never overdue once done", done, time.Hour, scene{told: true, ready: true}, verdictRelease, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := c.h
			c.scene.wait, c.scene.drain = wait, drain
			require.Equal(t, c.want, h.advance(begin.add(c.after), c.scene))
			require.Equal(t, c.wake, h.wake(wait)-begin.mono)
			require.Equal(t, c.want == verdictAsk || c.h.asked, h.asked)
		})
	}
	t.Run("the wait ends by the longer clock", func(t *testing.T) {
		h := fresh
		now := instant{mono: begin.mono + time.Second, wall: begin.wall + wait}
		require.Equal(t, verdictAsk, h.advance(now, scene{told: true, wait: wait, drain: drain}))
	})
	t.Run("the deadline is a drain away from being asked, by both clocks", func(t *testing.T) {
		h := fresh
		now := instant{mono: begin.mono + time.Second, wall: begin.wall + time.Minute}
		require.Equal(t, verdictAsk, h.advance(now, scene{told: true, ready: true, wait: wait, drain: drain}))
		require.Equal(t, now.add(drain), h.deadline)
	})
}

// Whatever happens, a handover asks once, never releases under work before the
// deadline, ends within wait + drain, and wake neither lies nor makes the stepper
// spin.
func TestHandoverEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		upTo := func(d time.Duration, name string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(d)).Draw(t, name))
		}
		begin := instant{mono: time.Hour, wall: 2 * time.Hour}
		h := handover{since: begin, why: rapid.SampledFrom([]Reason{ReasonClosing, ReasonTransferred}).Draw(t, "why")}
		s := scene{told: true, wait: upTo(5*time.Second, "wait"), drain: 1 + upTo(20*time.Second, "drain")}
		now, asked := begin, 0
		for {
			s.ready, s.idle = rapid.Bool().Draw(t, "ready"), rapid.Bool().Draw(t, "idle")
			s.refused = !s.ready && rapid.Bool().Draw(t, "refused")
			s.wanted = (asked > 0 || h.deliberate()) && rapid.Bool().Draw(t, "wanted")
			v := h.advance(now, s)
			passed := now.age(begin)
			switch v {
			case verdictAsk:
				asked++
				require.Equal(t, 1, asked)
				require.Equal(t, now.add(s.drain), h.deadline)
				require.True(t, s.ready || s.idle || s.refused || passed >= s.wait, "asked before a successor was ready")
			case verdictRelease:
				require.True(t, h.done, "released while work went on")
				return
			case verdictOverdue:
				require.False(t, h.done)
				require.GreaterOrEqual(t, now.mono, h.deadline.mono)
				return
			case verdictCancel:
				require.True(t, s.wanted && (s.refused || !s.ready && passed >= s.wait), "called off though it could go on")
				return
			case verdictStay:
			}
			require.Less(t, passed, s.wait+s.drain, "still under way")
			at := h.wake(s.wait)
			require.Greater(t, at, now.mono, "wakes at once and then has nothing to say")
			if asked > 0 && rapid.Bool().Draw(t, "done") {
				h.done = true
				continue // drained wakes the stepper: released at once
			}
			if rapid.Bool().Draw(t, "sleeps until it is due") {
				now = now.add(at - now.mono)
				unchanged := s
				unchanged.ready, unchanged.idle, unchanged.wanted, unchanged.refused = false, false, false, false
				copied := h
				require.NotEqual(t, verdictStay, copied.advance(now, unchanged), "woke for nothing")
			} else {
				now = now.add(upTo(at-now.mono, "woken early"))
			}
		}
	})
}
