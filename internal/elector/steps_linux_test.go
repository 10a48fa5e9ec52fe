package elector

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkSteps shows what the steps of a Node cost by the number of roles: all steps of a
// scenario together, and the longest of them, which delays everything else that the process
// has to say. It counts processor time, so that other work of the machine plays no part.
func BenchmarkSteps(b *testing.B) {
	for _, roles := range []int{1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("roles=%d", roles), func(b *testing.B) {
			for _, phase := range []string{"start", "quiet", "crash", "join", "close"} {
				b.Run(phase, func(b *testing.B) {
					var all, longest time.Duration
					steps := 0
					for b.Loop() {
						a, l, n := stepsOf(phase, roles)
						all, longest, steps = all+a, max(longest, l), steps+n
					}
					b.ReportMetric(float64(longest.Microseconds())/1000, "longest-ms")
					b.ReportMetric(float64(all.Microseconds())/1000/float64(b.N), "cpu-ms/op")
					b.ReportMetric(float64(steps)/float64(b.N), "steps/op")
				})
			}
		})
	}
}

// stepsOf plays a scenario of three members, and counts the steps of one phase.
func stepsOf(phase string, roles int) (all, longest time.Duration, steps int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w := newWorld(1)
	w.mute = true
	w.step = func(do func()) {
		began := threadTime()
		do()
		d := threadTime() - began
		all, longest, steps = all+d, max(longest, d), steps+1
	}
	for i := range 3 {
		w.start(fmt.Sprint("m", i), roles, nil)
		w.pass(time.Millisecond)
	}
	w.pass(12 * time.Second)
	if phase == "start" {
		return all, longest, steps
	}
	all, longest, steps = 0, 0, 0
	switch phase {
	case "quiet":
		w.pass(10 * time.Second)
	case "crash":
		w.actors[0].dead = true
		w.pass(12 * time.Second)
	case "join":
		w.start("late", roles, nil)
		w.pass(45 * time.Second)
	case "close":
		for _, a := range w.actors {
			a.want(Desired{Roles: roles, Closing: true})
		}
		w.pass(6 * time.Second)
	}
	return all, longest, steps
}

func threadTime() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now)
	return time.Duration(now.Nano())
}
