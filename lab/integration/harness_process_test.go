package integration

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/witness"
)

// The member's side: the test binary, executed again. It contends as its parameters say, samples its own leadership every
// millisecond, records the events that its application gets, and carries out its parent's commands.

// envMember makes the test binary a member, with the directory that it names.
const envMember = "NELI_TEST_MEMBER"

func TestMain(m *testing.M) {
	if err := checkClient(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if dir := os.Getenv(envMember); dir != "" {
		if err := memberMain(dir); err != nil {
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

// eventLine is one line of a member's file of events.
type eventLine struct {
	At        time.Duration
	Contender int
	What      string      // acquired, revoked, fenced; or what the application did
	Reason    string      `json:",omitempty"`
	Terms     []neli.Term `json:",omitempty"`
	Error     string      `json:",omitempty"`
}

// Notes that a member keeps beside its samples.
const (
	notePasses  = iota // how often all roles were sampled
	noteRecords        // what contender 0, 1, … has read of its topic
)

// Files of a member, in its directory.
const (
	samplesName = "samples"
	eventsName  = "events.jsonl"
	logName     = "member.log"
)

type memberProcess struct {
	name       string
	samples    *witness.Samples
	events     *os.File
	log        *slog.Logger
	contenders []*contender

	mu sync.Mutex // one event after another
}

func memberMain(dir string) error {
	in := json.NewDecoder(os.Stdin)
	var params memberParams
	if err := in.Decode(&params); err != nil {
		return fmt.Errorf("reading parameters: %w", err)
	}
	m, err := openMember(dir, params.Name)
	if err != nil {
		return err
	}
	for i, p := range params.Contenders {
		c, err := m.newContender(i, p)
		if err != nil {
			return err
		}
		m.contenders = append(m.contenders, c)
	}
	stop, sampled := make(chan struct{}), make(chan struct{})
	go m.sample(stop, sampled)
	for _, c := range m.contenders {
		go c.drive()
	}
	for {
		var cmd command
		// The end of input means that the parent has ended.
		if err := in.Decode(&cmd); errors.Is(err, io.EOF) {
			return errors.New("the parent is gone")
		} else if err != nil {
			return fmt.Errorf("reading a command: %w", err)
		}
		if cmd.Do == "exit" {
			close(stop)
			<-sampled
			return nil
		}
		if err := m.contenders[cmd.Contender].do(cmd); err != nil {
			return err
		}
	}
}

func openMember(dir, name string) (*memberProcess, error) {
	samples, err := openSamples(dir)
	if err != nil {
		return nil, err
	}
	create := func(name string) (*os.File, error) {
		return os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	}
	events, err := create(eventsName)
	if err != nil {
		return nil, err
	}
	log, err := create(logName)
	if err != nil {
		return nil, err
	}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return &memberProcess{name: name, samples: samples, events: events, log: logger}, nil
}

// openSamples maps a member's file of samples, which its parent made by doing so.
func openSamples(dir string) (*witness.Samples, error) {
	f, err := os.OpenFile(filepath.Join(dir, samplesName), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	return witness.Open(f)
}

// sample checks for every role whether it is led, each millisecond, and once more before it stops. One reading of the clock
// ends a sample and begins the next.
func (m *memberProcess) sample(stop <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	passes := int64(0)
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-stop:
			last = true
		}
		before := witness.Now()
		for _, c := range m.contenders {
			for role := range c.current {
				answer := c.ask(role)
				after := witness.Now()
				w := witness.Window{Before: before, After: after}
				c.current[role] = m.samples.Take(c.current[role], c.index, role, answer, w)
				before = after
			}
			m.samples.Note(noteRecords+c.index, int64(c.neli.Stats().Records))
		}
		passes++
		m.samples.Note(notePasses, passes)
	}
}

// tell writes one event, in a single write, so that it survives SIGKILL.
func (m *memberProcess) tell(e eventLine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	line, err := json.Marshal(e)
	if err == nil {
		_, err = m.events.Write(append(line, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("writing an event: %v", err))
	}
}

// contender is one Neli and the application around it.
type contender struct {
	contenderParams
	member   *memberProcess
	index    int
	neli     *neli.Neli
	current  []int // by role: its run that is going on, −1 at first; the sampler's
	hang     chan struct{}
	hung     sync.Once
	finish   chan struct{}
	finished sync.Once
}

func (m *memberProcess) newContender(i int, p contenderParams) (*contender, error) {
	c := &contender{contenderParams: p, member: m, index: i, hang: make(chan struct{}), finish: make(chan struct{})}
	c.current = make([]int, p.Roles)
	for role := range c.current {
		c.current[role] = -1
	}
	kafka := neli.KafkaConfigMap{"bootstrap.servers": p.Bootstrap}
	for name, value := range p.Kafka {
		kafka[name] = value
	}
	var err error
	c.neli, err = neli.New(neli.Config{
		KafkaConfig:       kafka,
		LeaderGroupID:     p.Group,
		LeaderTopic:       p.Topic,
		Name:              m.name,
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
		Logger:            m.log,
	}, c.barrier)
	return c, err
}

func (c *contender) ask(role int) int64 {
	if c.Mode == neli.NonExclusive {
		if c.neli.IsLeaderOf(role) {
			return witness.NoToken
		}
		return witness.No
	}
	if token, ok := c.neli.Token(role); ok {
		return token
	}
	return witness.No
}

func (c *contender) tell(e eventLine) {
	e.At, e.Contender = witness.Now(), c.index
	c.member.tell(e)
}

func (c *contender) barrier(e neli.Event) {
	switch e := e.(type) {
	case neli.LeaderAcquired:
		c.tell(eventLine{What: "acquired", Reason: e.Reason.String(), Terms: e.Terms})
	case neli.LeaderFenced:
		c.tell(eventLine{What: "fenced", Reason: e.Reason.String(), Terms: e.Terms})
	case neli.LeaderRevoked:
		c.tell(eventLine{What: "revoked", Reason: e.Reason.String(), Terms: e.Terms})
		if c.HoldRevoked {
			<-c.finish
			c.tell(eventLine{What: "finished", Terms: e.Terms})
		}
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
	c.tell(eventLine{What: "ended", Error: fmt.Sprint(err)})
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
		c.tell(eventLine{What: "hangs"})
		select {}
	case <-time.After(time.Millisecond):
	}
}

func (c *contender) do(cmd command) error {
	switch cmd.Do {
	case "close":
		go func() {
			c.tell(eventLine{What: "closing"})
			e := eventLine{What: "closed"}
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
