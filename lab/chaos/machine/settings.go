package machine

import (
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goneli/neli/lab/chaos/jail"
	"github.com/goneli/neli/lab/chaos/member"
	"github.com/goneli/neli/lab/chaos/plan"
	"github.com/goneli/neli/lab/chaos/wire"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/pause"
)

// Settings of a run, beside those of package plan.
const (
	Sentinels = "sentinels" // one on each member's host
	Prepare   = "prepare"   // members prepare roles, and stand by
	Logs      = "logs"      // exclusive mode on a majority of three logs
	Far       = "far"       // two members are far from all brokers
)

// Settings returns the names of all settings, with brokers or without.
func Settings(brokers bool) []string {
	if brokers {
		return []string{Sentinels, Prepare, Logs, Far, plan.SlowFollowers, plan.FullDisks, plan.Clocks, plan.NewTopics}
	}
	return []string{Sentinels, Prepare}
}

// Has reports whether a run has a setting.
func (o Options) Has(setting string) bool { return slices.Contains(o.With, setting) }

//go:embed clock.c.txt
var clockSource string

// far is how much later a packet arrives, each way, by the member's number. T is at least 20 round trips, as docs/tuning.md asks.
func (o Options) far(i int) time.Duration {
	if o.Has(Far) && i >= Members-2 {
		return o.Timeout / 40 / time.Duration(Members-i)
	}
	return 0
}

// answer is what far members add to a bound: two round trips, for a successor that crashed before it claimed.
func (o Options) answer() time.Duration { return 2 * 2 * o.far(Members-1) }

// standing is an undisturbed link's policy: a delay between a far member and a broker, otherwise none.
func (m *machine) standing(a, b string) (p wire.Policy) {
	for i := range Members {
		if host := memberHost(i); (a == host || b == host) && (slices.Contains(brokerHosts(), a) || slices.Contains(brokerHosts(), b)) {
			p.Delay = m.far(i)
		}
	}
	return p
}

// distances sets the links of far members.
func (m *machine) distances() {
	if !m.Has(Far) {
		return
	}
	for _, host := range MemberHosts() {
		for _, broker := range brokerHosts() {
			m.net.Set(host, broker, m.standing(host, broker))
			m.net.Set(broker, host, m.standing(host, broker))
		}
	}
}

func (m *machine) socket(host string) string {
	return filepath.Join(m.Scratch, "sentinel-"+host, "socket")
}

// startSentinels starts a sentinel on each member's host. It lives until the run ends.
func (m *machine) startSentinels() error {
	for _, host := range MemberHosts() {
		params := member.Params{Name: "sentinel of " + host, Sentinel: m.socket(host)}
		if m.Peers {
			params.Peers = m.peers()
		} else {
			params.Bootstrap = m.cluster.Bootstrap()
		}
		text, err := json.Marshal(params)
		if err != nil {
			return err
		}
		log, err := os.Create(filepath.Join(m.Dir, MembersDir, host+".sentinel.log"))
		if err != nil {
			return err
		}
		cmd := exec.Command(jail.Self())
		cmd.Env, cmd.Stderr = append(os.Environ(), member.SentinelEnv+"="+string(text)), log
		_, err = m.nursery.StartBy(cmd, m.net.Host(host).Start)
		if err = errors.Join(err, log.Close()); err != nil {
			return err
		}
	}
	return nil
}

// diskSize holds the data of an hour, of which Kafka deletes nothing.
const diskSize = "512m"

// furnish gives brokers disks that can be full, and clocks that can be set.
func (m *machine) furnish(hosts []kafkatest.Host) error {
	for i := range hosts {
		if m.Has(plan.FullDisks) {
			hosts[i].Data = m.scratch("disk", i)
			if err := errors.Join(os.MkdirAll(hosts[i].Data, 0o755), unix.Mount("tmpfs", hosts[i].Data, "tmpfs", 0, "size="+diskSize)); err != nil {
				return fmt.Errorf("mounting the disk of %s: %w", brokerHost(i), err)
			}
		}
		if m.Has(plan.Clocks) {
			if err := errors.Join(m.clock(i, 0), buildClock(m.scratch("clock.so", i))); err != nil {
				return err
			}
			start := hosts[i].Start
			hosts[i].Start = func(cmd *exec.Cmd) error {
				cmd.Env = append(os.Environ(), "LD_PRELOAD="+m.scratch("clock.so", i), "CHAOS_CLOCK="+m.scratch("clock", i))
				return start(cmd)
			}
		}
	}
	return nil
}

func (m *machine) scratch(what string, broker int) string {
	return filepath.Join(m.Scratch, what+"-"+brokerHost(broker))
}

// buildClock makes the library by which a broker reads its clock.
func buildClock(file string) error {
	cmd := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-x", "c", "-o", file, "-", "-ldl")
	cmd.Stdin = strings.NewReader(clockSource)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building a clock that can be set: %w: %s", err, out)
	}
	return nil
}

// clock sets a broker's wall clock to the machine's time plus by.
func (m *machine) clock(broker int, by time.Duration) error {
	file, err := os.OpenFile(m.scratch("clock", broker), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(binary.NativeEndian.AppendUint64(nil, uint64(by)))
	return errors.Join(err, file.Close())
}

// setClock steps or slews a broker's wall clock for a while, and then sets it right.
func (m *machine) setClock(ctx context.Context, p plan.Part) error {
	const every = 100 * time.Millisecond
	var err error
	for past := time.Duration(0); past < p.Hold && err == nil; past += every {
		err = errors.Join(m.clock(p.Broker, p.Delay+time.Duration(p.Rate*float64(past))), pause.For(ctx, every))
	}
	// When a clock is set back, Kafka's timers stand still until it has caught up.
	return errors.Join(err, m.clock(p.Broker, 0), pause.For(ctx, p.Delay+time.Duration(p.Rate*float64(p.Hold))))
}

// fill fills a broker's disk for a while.
func (m *machine) fill(ctx context.Context, p plan.Part) error {
	file, err := os.Create(filepath.Join(m.scratch("disk", p.Broker), "filler"))
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	for err = unix.ENOSPC; errors.Is(err, unix.ENOSPC); { // the broker may take room between the two calls
		var room unix.Statfs_t
		if err = unix.Fstatfs(int(file.Fd()), &room); err == nil && room.Bavail > 0 {
			err = unix.Fallocate(int(file.Fd()), 0, 0, int64(room.Bavail)*room.Bsize)
		}
	}
	return errors.Join(err, pause.For(ctx, p.Hold))
}
