package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"time"

	"github.com/goneli/neli/bench/member"
	"github.com/goneli/neli/testkit/kafkatest"
	"github.com/goneli/neli/testkit/nursery"
)

type redisServer struct {
	process *nursery.Process
	addr    string
	version string
}

func redisBed() Bed {
	bed := Bed{Name: "1 server", Family: "redsync", Start: startRedis}
	system := func(setting string, expiry, retry, nominal time.Duration) System {
		return System{Family: bed.Family, Bed: bed.Name, Setting: setting, Lease: nominal, Beat: nominal / 3, Settle: 300 * time.Millisecond,
			Idle: []int{Size, 30}, Kinds: common, Members: func(s Servers, group string) Group {
				return plain{member.Params{Kind: member.Redis, Group: group, Servers: []string{s.(*redisServer).addr}, Lease: expiry, Retry: retry}}
			}}
	}
	// redsync names no minimum. It gives each request a twentieth of the expiry, 25 ms
	// here; 50 ms is the lower end of its own delay between tries.
	const fastest, retry = 500 * time.Millisecond, 50 * time.Millisecond
	idle := system("expiry 1 s, tries each 50–250 ms", time.Second, 0, time.Second)
	idle.Kinds = nil // to compare its cost with other systems that have a lease of 1 s
	bed.Systems = []System{
		system("default: expiry 8 s, tries each 50–250 ms", 0, 0, 8*time.Second),
		system("fast: expiry 500 ms, tries each 50 ms", fastest, retry, fastest),
		idle,
	}
	return bed
}

const redisBinary = "redis-server"

// FindRedis says how to get it if it is missing.
func FindRedis() error {
	if _, err := exec.LookPath(redisBinary); err != nil {
		return fmt.Errorf("%s is missing (Debian: apt-get install redis-server): %w", redisBinary, err)
	}
	return nil
}

func startRedis(ctx context.Context, place Place) (Servers, error) {
	if err := FindRedis(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(place.Dir, "redis-")
	if err != nil {
		return nil, err
	}
	addrs, err := kafkatest.FreeAddrs(1)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addrs[0])
	if err != nil {
		return nil, err
	}
	s := &redisServer{addr: addrs[0], version: redisVersion(ctx)}
	cmd := exec.Command(redisBinary, "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--appendonly", "no")
	if s.process, err = place.Start(cmd); err != nil {
		return nil, err
	}
	if err := s.await(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// await waits until it listens.
func (s *redisServer) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-s.process.Done():
			return errors.New("redis-server has ended: " + s.process.State())
		case <-ctx.Done():
			return fmt.Errorf("waiting for redis-server: %w", err)
		}
	}
}

func redisVersion(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, redisBinary, "--version").Output()
	if err != nil {
		return "Redis, " + err.Error()
	}
	return "Redis " + string(regexp.MustCompile(`[0-9]+(\.[0-9]+)+`).Find(out))
}

func (s *redisServer) Pids() []int     { return []int{s.process.Pid()} }
func (s *redisServer) Version() string { return s.version }
func (s *redisServer) Stop()           { s.process.Kill() }
