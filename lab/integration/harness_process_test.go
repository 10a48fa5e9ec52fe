package integration

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/child"
	labclients "github.com/goneli/neli/lab/clients"
	"github.com/goneli/neli/lab/witness"
)

// The member's side: the test binary, executed again. It contends as its parameters say, samples its own leadership every
// millisecond, records the events that its application gets, and carries out its parent's commands.

// envMember makes the test binary a member.
const envMember = "NELI_TEST_MEMBER"

func TestMain(m *testing.M) {
	if _, err := labclients.Chosen(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Getenv(envMember) != "" {
		if err := memberMain(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	raiseParallel()
	os.Exit(m.Run())
}

// raiseParallel lets four tests run side by side unless -parallel says otherwise:
// members wait for time to pass much more than they compute.
func raiseParallel() {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", "4")
	}
}

// memberParams is what a member reads first from standard input.
type memberParams struct {
	Name       string
	Contenders []contenderParams

	program string // the test binary of another release; empty: this one
}

// contenderParams are the settings of one Neli and of the application around it.
type contenderParams struct {
	Bootstrap     string
	Group, Topic  string
	Mode          neli.Mode
	Nomination    neli.Nomination
	Timeout       time.Duration // T
	Interval      time.Duration
	MaxPulse      time.Duration
	Drain         time.Duration
	Roles         int
	Partitions    int
	GroupsOnTopic int
	Sentinel      string
	Kafka         map[string]string
	Logs          int    // of one broker each; 0: one replicated log
	Client        string // empty: the one that NELI_PROVIDER names

	Drive       drive
	HoldRevoked bool // LeaderRevoked blocks until the command "finish"
}

// drive is how an application drives its Neli.
type drive string

const (
	driveBackground drive = "background"
	driveLead       drive = "lead"
	drivePulse      drive = "pulse"
)

// command is a command of the parent, one JSON value each.
type command struct {
	Do        string // close, roles, hang, finish, exit
	Contender int
	Roles     int
}

// eventLine is a report of a member: an event, or what the application did.
type eventLine struct {
	At        time.Duration
	Contender int
	child.Event
	Error string `json:",omitempty"`
}

func memberMain() error {
	var params memberParams
	self, err := child.Begin(&params)
	if err != nil {
		return err
	}
	log := self.Logger()
	var contenders []*contender
	var sampled []child.Contender
	for i, p := range params.Contenders {
		c, err := newContender(self, log, params.Name, i, p)
		if err != nil {
			return err
		}
		contenders = append(contenders, c)
		sampled = append(sampled, child.Contender{Neli: c.neli, Mode: p.Mode, Roles: p.Roles})
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	sampler := make(chan error, 1)
	go func() { sampler <- child.Sample(ctx, sampled...) }()
	for _, c := range contenders {
		go c.drive()
	}
	return child.Obey(self, func(cmd command) (last bool, err error) {
		if cmd.Do == "exit" {
			stop()
			return true, <-sampler
		}
		return false, contenders[cmd.Contender].do(cmd)
	})
}

// contender is one Neli and the application around it.
type contender struct {
	contenderParams
	self     *child.Self
	index    int
	neli     *neli.Neli
	hang     chan struct{}
	hung     sync.Once
	finish   chan struct{}
	finished sync.Once
}

func newContender(self *child.Self, log *slog.Logger, name string, i int, p contenderParams) (*contender, error) {
	c := &contender{contenderParams: p, self: self, index: i, hang: make(chan struct{}), finish: make(chan struct{})}
	kafka := neli.KafkaConfigMap{"bootstrap.servers": p.Bootstrap}
	for name, value := range p.Kafka {
		kafka[name] = value
	}
	var err error
	c.neli, err = neli.New(neli.Config{
		KafkaConfig:       kafka,
		LeaderGroupID:     p.Group,
		LeaderTopic:       p.Topic,
		Name:              name,
		Mode:              p.Mode,
		Nomination:        p.Nomination,
		Roles:             p.Roles,
		Partitions:        p.Partitions,
		HeartbeatTimeout:  p.Timeout,
		HeartbeatInterval: p.Interval,
		MaxPulseInterval:  p.MaxPulse,
		DrainTimeout:      p.Drain,
		GroupsOnTopic:     p.GroupsOnTopic,
		Sentinel:          p.Sentinel,
		Logs:              p.Logs,
		Provider:          clientNamed(p.Client),
		Logger:            log,
	}, c.barrier)
	return c, err
}

// tell reports an event, or what the application does.
func (c *contender) tell(e eventLine) {
	e.At, e.Contender = witness.Now(), c.index
	c.self.Tell(e)
}

func (c *contender) did(what string) { c.tell(eventLine{Event: child.Event{What: what}}) }

func (c *contender) barrier(e neli.Event) {
	event := child.EventOf(e)
	c.tell(eventLine{Event: event})
	if event.What == "revoked" && c.HoldRevoked {
		<-c.finish
		c.tell(eventLine{Event: child.Event{What: "finished", Terms: event.Terms}})
	}
}

// drive contends until the Neli has ended.
func (c *contender) drive() {
	var err error
	switch c.Drive {
	case driveLead:
		err = c.neli.Lead(context.Background(), func(ctx context.Context, l neli.Leadership) error {
			<-ctx.Done()
			return nil
		})
	case drivePulse:
		err = c.pulse()
	default:
		var p neli.Pulser
		if p, err = c.neli.Background(func() { c.work() }); err == nil {
			err = p.Await()
		}
	}
	c.tell(eventLine{Event: child.Event{What: "ended"}, Error: fmt.Sprint(err)})
}

func (c *contender) pulse() error {
	for {
		leads, err := c.neli.Pulse(10 * time.Millisecond)
		if err != nil {
			return err
		}
		if leads {
			c.work()
		}
	}
}

// work does a small piece of work, or, on command, hangs forever.
func (c *contender) work() {
	select {
	case <-c.hang:
		c.did("hangs")
		select {}
	case <-time.After(time.Millisecond):
	}
}

func (c *contender) do(cmd command) error {
	switch cmd.Do {
	case "close":
		go func() {
			c.did("closing")
			e := eventLine{Event: child.Event{What: "closed"}}
			if err := c.neli.Close(); err != nil {
				e.Error = err.Error()
			}
			c.tell(e)
		}()
		return nil
	case "roles":
		return c.neli.SetRoles(cmd.Roles)
	case "hang":
		c.hung.Do(func() { close(c.hang) })
		return nil
	case "finish":
		c.finished.Do(func() { close(c.finish) })
		return nil
	}
	return fmt.Errorf("unknown command %q", cmd.Do)
}
