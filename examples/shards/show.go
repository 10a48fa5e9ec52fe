package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli"
)

const settle = 6 * time.Second

// show plays the scenes.
func show(ctx context.Context, cfg neli.Config, bootstrap string) error {
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
			err = play(ctx, scene[0], append(scene[1:], "-bootstrap", bootstrap))
		}
	}
	stop()
	return errors.Join(err, <-watch)
}

// scene is what three processes do.
type scene struct {
	mu     sync.Mutex
	inputs [3]io.WriteCloser
	owner  [count]int     // who serves a shard
	serves [count][]int64 // when a process began to serve it
	left   [count][]int64 // and when it ended
	begun  int            // times that a process began
	rounds []*[count]string
}

func play(ctx context.Context, name string, args []string) error {
	ctx, stop := context.WithCancel(ctx)
	s := &scene{}
	var processes sync.WaitGroup
	defer processes.Wait()
	defer stop()
	var last *exec.Cmd
	for who := range s.inputs {
		cmd := exec.Command(os.Args[0], append(args, "-member", string(rune('a'+who)))...)
		cmd.Stderr = os.Stderr
		in, err1 := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		if err := errors.Join(err1, err2, cmd.Start()); err != nil {
			return err
		}
		defer in.Close() // ends the process
		s.inputs[who], last = in, cmd
		processes.Go(func() { s.hear(who, out); _ = cmd.Wait() })
	}
	late := errors.New(name + ": shards are not served within a minute")
	if !s.await(ctx, count) {
		return late
	}
	processes.Go(func() { s.load(ctx) })
	time.Sleep(settle) // the members get to know each other
	began := time.Now().UnixNano()
	for i := range 3 {
		s.mu.Lock()
		for shard, who := range s.owner {
			fmt.Fprintln(s.inputs[who], "move", shard, string(rune('a'+(who+1)%3)))
		}
		s.mu.Unlock()
		if !s.await(ctx, (2+i)*count) {
			return late
		}
	}
	moves := fmt.Sprintf("planned moves %s: %s\n", name, s.gaps(began))
	time.Sleep(settle) // a sentinel releases no young term
	killed := time.Now().UnixNano()
	_ = last.Process.Kill()
	s.mu.Lock()
	dead := 0
	for shard, who := range s.owner {
		if who == 2 {
			s.left[shard] = append(s.left[shard], killed)
			dead++
		}
	}
	s.mu.Unlock()
	if !s.await(ctx, 4*count+dead) {
		return late
	}
	moves += fmt.Sprintf("SIGKILL %s: %s\n", name, s.gaps(killed))
	stop()
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
			s.owner[number], s.serves[number] = who, append(s.serves[number], at)
			s.begun++
		case "left":
			s.left[number] = append(s.left[number], at)
		case "answered":
			for shard, is := range rest {
				if is == '!' {
					s.rounds[number][shard] += string(rune('a' + who))
				}
			}
		}
		s.mu.Unlock()
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

// await waits until processes have begun to serve shards that many times.
func (s *scene) await(ctx context.Context, times int) bool {
	for range 6000 {
		s.mu.Lock()
		begun := s.begun
		s.mu.Unlock()
		if begun >= times || ctx.Err() != nil {
			return begun >= times
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// gaps says for how long nobody served the shards that moved since a time.
func (s *scene) gaps(since int64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gaps []time.Duration
	for shard, serves := range s.serves {
		for i, at := range serves[1:] { // the order of times, since a term begins after the former one has ended
			if at > since && i < len(s.left[shard]) {
				gaps = append(gaps, time.Duration(at-s.left[shard][i]))
			}
		}
	}
	slices.Sort(gaps)
	at := func(percent int) time.Duration { return gaps[(len(gaps)-1)*percent/100].Round(100 * time.Microsecond) }
	return fmt.Sprintf("%d shards, nobody served one for %v (median), %v (99th percentile)", len(gaps), at(50), at(99))
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
