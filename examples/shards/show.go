package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goneli/neli"
)

// limit is the longest time of a scene. Most take a third of it.
const limit = 90 * time.Second

// show plays the scenes.
func show(ctx context.Context, cfg neli.Config, bootstrap string, at pace) error {
	dir, err := os.MkdirTemp("", "shards")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket, group := filepath.Join(dir, "sentinel"), cfg.LeaderGroupID
	ctx, stop := context.WithCancel(ctx)
	watch := make(chan error, 1)
	go func() {
		watch <- neli.RunSentinel(ctx, neli.Config{KafkaConfig: cfg.KafkaConfig, Sentinel: socket})
	}()
	for _, scene := range [][]string{
		{"with Prepare", "-group", group + "-warm"},
		{"without Prepare", "-group", group + "-cold", "-cold"},
		{"with Standby", "-group", group + "-standby", "-standby"},
		{"with Standby and sentinel", "-group", group + "-watched", "-standby", "-sentinel", socket},
	} {
		if err == nil {
			err = play(ctx, scene[0], at, append(scene[1:], "-bootstrap", bootstrap))
		}
	}
	stop()
	return errors.Join(err, <-watch)
}

const c = 2 // the process that is killed

// letter is the name of a process.
func letter(who int) string { return string(rune('a' + who)) }

// pace is how much happens in a scene.
type pace struct {
	moves int           // of each shard
	pause time.Duration // before the moves, and before the SIGKILL
}

// scene is what three processes do.
type scene struct {
	mu     sync.Mutex
	inputs [3]io.WriteCloser
	stints [count][]stint // of a shard, in order
	moving [count]bool    // a process was told to move the shard, and has not said "tried"
	rounds []*[count]string
}

// stint is a time in which a process serves a shard.
type stint struct {
	who      int
	from, to int64 // to is 0 until the stint ends
}

func play(ctx context.Context, name string, at pace, args []string) error {
	ctx, end := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s: takes longer than %v", name, limit))
	defer end()
	ctx, stop := context.WithCancelCause(ctx)
	s := &scene{}
	var processes sync.WaitGroup
	defer processes.Wait()
	defer stop(nil)
	var victim *os.Process
	var killed atomic.Int64      // when the victim was killed
	heard := make(chan struct{}) // closed after the victim's last line
	for who := range s.inputs {
		cmd := exec.CommandContext(ctx, os.Args[0], append(args, "-member", letter(who))...)
		cmd.Stderr = os.Stderr
		in, err1 := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		cmd.Cancel, cmd.WaitDelay = func() error { return in.Close() }, 10*time.Second // the process ends, or is killed
		if err := errors.Join(err1, err2, cmd.Start()); err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		s.inputs[who], victim = in, cmd.Process // c is the last
		processes.Go(func() {
			s.hear(who, out)
			err := cmd.Wait()
			if who == c && killed.Load() != 0 {
				close(heard)
			} else {
				stop(fmt.Errorf("%s: member %s has ended: %v", name, letter(who), err))
			}
		})
	}
	if err := s.await(ctx, func(int, int) bool { return true }); err != nil {
		return err
	}
	processes.Go(func() { s.load(ctx) })
	time.Sleep(at.pause) // the members get to know each other
	began := time.Now().UnixNano()
	for range at.moves {
		if err := s.move(ctx); err != nil {
			return err
		}
	}
	moves := fmt.Sprintf("planned moves %s: %s\n", name, s.gaps(began))
	time.Sleep(at.pause) // a sentinel releases no young term
	killed.Store(time.Now().UnixNano())
	if err := victim.Kill(); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	<-heard
	s.died(c, killed.Load())
	if err := s.await(ctx, func(_, who int) bool { return who != c }); err != nil {
		return err
	}
	moves += fmt.Sprintf("SIGKILL %s: %s\n", name, s.gaps(killed.Load()))
	stop(nil)
	s.print(name, moves)
	return nil
}

// hear reads what a process says.
func (s *scene) hear(who int, out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var what, rest string
		var number int
		var at int64
		_, _ = fmt.Sscan(lines.Text(), &what, &number, &rest)
		_, _ = fmt.Sscan(rest, &at)
		s.mu.Lock()
		switch what {
		case "serves":
			s.stints[number] = append(s.stints[number], stint{who: who, from: at})
			slices.SortFunc(s.stints[number], func(a, b stint) int { return cmp.Compare(a.from, b.from) })
		case "left":
			s.ends(number, who, at)
		case "tried":
			s.moving[number] = false
		case "answered":
			for shard, is := range rest {
				if is == '!' {
					s.rounds[number][shard] += letter(who)
				}
			}
		}
		s.mu.Unlock()
	}
}

// ends ends the stint of a process, if there is one.
func (s *scene) ends(shard, who int, at int64) {
	for i, st := range s.stints[shard] {
		if st.who == who && st.to == 0 {
			s.stints[shard][i].to = at
		}
	}
}

// died ends all stints of a process.
func (s *scene) died(who int, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for shard := range s.stints {
		s.ends(shard, who, at)
	}
}

// load sends requests to all processes.
func (s *scene) load(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		s.mu.Lock()
		s.rounds = append(s.rounds, &[count]string{})
		round := len(s.rounds) - 1
		s.mu.Unlock()
		for _, in := range s.inputs {
			fmt.Fprintln(in, "requests", round, time.Now().UnixNano())
		}
	}
}

// move moves each shard to the next process. A move can fail: the other member may be unknown, or too busy to answer or
// to claim in time. Then whoever serves the shard tries again.
func (s *scene) move(ctx context.Context) error {
	var to [count]int
	s.mu.Lock()
	for shard, stints := range s.stints {
		to[shard] = (stints[len(stints)-1].who + 1) % 3
	}
	s.mu.Unlock()
	return s.await(ctx, func(shard, who int) bool {
		if who != to[shard] && !s.moving[shard] {
			s.moving[shard] = true
			go fmt.Fprintln(s.inputs[who], "move", shard, letter(to[shard]))
		}
		return who == to[shard]
	})
}

// await waits until each shard is served by a process that is right for it, and its former stints have ended: "serves"
// of one process can be read before "left" of another.
func (s *scene) await(ctx context.Context, right func(shard, who int) bool) error {
	for ; ; time.Sleep(10 * time.Millisecond) {
		served := 0
		s.mu.Lock()
		for shard, stints := range s.stints {
			n := len(stints)
			open := slices.IndexFunc(stints, func(st stint) bool { return st.to == 0 })
			if n > 0 && right(shard, stints[n-1].who) && open == n-1 {
				served++
			}
		}
		s.mu.Unlock()
		if served == count {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// gaps says for how long nobody served a shard before each stint that began after a time.
func (s *scene) gaps(since int64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gaps []time.Duration
	for _, stints := range s.stints {
		for i, st := range stints[1:] {
			if st.from > since && stints[i].to != 0 {
				gaps = append(gaps, time.Duration(st.from-stints[i].to))
			}
		}
	}
	if len(gaps) == 0 {
		return "0 changes"
	}
	slices.Sort(gaps)
	at := func(percent int) time.Duration { return gaps[(len(gaps)-1)*percent/100].Round(100 * time.Microsecond) }
	return fmt.Sprintf("%d changes, nobody served the shard for %v (median), %v (99th percentile)", len(gaps), at(50), at(99))
}

// print prints who served each request.
func (s *scene) print(name, moves string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var by [4]int // requests, by how many processes served them
	for _, round := range s.rounds {
		line := ""
		for _, who := range round {
			by[len(who)]++
			line += (who + ".")[:1]
		}
		fmt.Println(line)
	}
	fmt.Printf("%srequests %s: %d served by one process, %d by none, %d by two\n", moves, name, by[1], by[0], by[2]+by[3])
}
