package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/goneli/neli/lab/nursery"
)

// A Broker is one of a cluster's brokers, a process that can be stopped, in
// several ways, and started again. Its methods may be called concurrently.
type Broker struct {
	ID   int    // 1, 2, …
	Addr string // host:port of the listener that Cluster.Bootstrap names

	cluster   *Cluster
	listeners []listener
	dir       string
	startOn   func(*exec.Cmd) error

	mu      sync.Mutex
	process *nursery.Process // the current or last one; nil before the first
	logged  int              // bytes in the log before it
}

var errNotRunning = errors.New("not running")

// Pid returns the process id of the broker's JVM, or 0 when none runs.
func (b *Broker) Pid() int {
	if p := b.current(); p != nil && p.Running() {
		return p.Pid()
	}
	return 0
}

// Kill ends the broker as a crash would, by SIGKILL, and returns when the
// process has ended. A broker that is not running is left alone.
func (b *Broker) Kill() {
	if p := b.current(); p != nil {
		p.Kill()
	}
}

// Terminate asks the broker for a controlled shutdown, by SIGTERM, and waits for its end. It resumes a suspended
// broker. If ctx is done first, the shutdown continues.
func (b *Broker) Terminate(ctx context.Context) error {
	p := b.current()
	if p == nil || !p.Running() {
		return nil
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return b.errorf("terminating: %w", err)
		}
	}
	select {
	case <-p.Done():
		return nil
	case <-ctx.Done():
		return b.errorf("terminating: %w", ctx.Err())
	}
}

// Suspend sends the JVM SIGSTOP. Its connections stay open and silent, and the kernel still accepts new ones.
func (b *Broker) Suspend() error { return b.signal("suspending", syscall.SIGSTOP) }

// Resume resumes a suspended JVM, by SIGCONT.
func (b *Broker) Resume() error { return b.signal("resuming", syscall.SIGCONT) }

// Restart terminates the broker if it runs, starts it with the same settings,
// addresses and data, and waits until it is registered and not fenced.
//
// That takes 2 s if the broker led partitions and was terminated. If it was killed or led none, it takes until
// broker.session.timeout.ms is over, 9 s by default: Kafka refuses the registration as long as it believes the
// broker's former incarnation to be alive. It also needs a majority of the brokers: to bring back two of three,
// restart them concurrently.
func (b *Broker) Restart(ctx context.Context) error {
	if err := b.Terminate(ctx); err != nil {
		return err
	}
	began := time.Now()
	for {
		if err := b.start(); err != nil {
			return err
		}
		err := b.waitReady(ctx, b.ID)
		if err == nil {
			break
		}
		if !b.stillRegistered() {
			return err
		}
	}
	b.cluster.opts.Log.Info("broker restarted", "id", b.ID, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// start starts the JVM and does not wait until it serves.
func (b *Broker) start() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process != nil && b.process.Running() {
		return b.errorf("starting: it runs already")
	}
	if b.cluster.nursery.Closed() {
		return b.errorf("starting: %w", nursery.ErrClosed)
	}
	log, err := os.OpenFile(b.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return b.errorf("starting: %w", err)
	}
	defer log.Close() // the JVM has its own descriptor
	if former, err := log.Stat(); err == nil {
		b.logged = int(former.Size())
	}
	cmd := b.cluster.java("-Xmx384m", "-Xms64m", "kafka.Kafka", b.propertiesFile())
	cmd.Stdout, cmd.Stderr = log, log
	b.process, err = b.cluster.nursery.StartBy(cmd, b.startOn)
	if err != nil {
		return b.errorf("starting: %w", err)
	}
	return nil
}

func (b *Broker) current() *nursery.Process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.process
}

func (b *Broker) signal(doing string, sig syscall.Signal) error {
	p := b.current()
	if p == nil {
		return b.errorf("%s: %w", doing, errNotRunning)
	}
	if err := p.Signal(sig); err != nil {
		return b.errorf("%s: %w", doing, err)
	}
	return nil
}

// listener returns the listener of that name. If there is none, the result has no addresses.
func (b *Broker) listener(name string) listener {
	for _, l := range b.listeners {
		if l.name == name {
			return l
		}
	}
	return listener{}
}

func (b *Broker) propertiesFile() string { return filepath.Join(b.dir, "server.properties") }
func (b *Broker) logFile() string        { return filepath.Join(b.dir, "broker.log") }

func (b *Broker) dataDir() string {
	if hosts := b.cluster.opts.Hosts; hosts != nil && hosts[b.ID-1].Data != "" {
		return hosts[b.ID-1].Data
	}
	return filepath.Join(b.dir, "data")
}

func (b *Broker) errorf(format string, args ...any) error {
	return fmt.Errorf("kafkatest: broker %d: %w", b.ID, fmt.Errorf(format, args...))
}

// java returns the command that runs one of Kafka's classes. args has the JVM's options first, then the class.
// A single-threaded collector and one compiler suit a short life beside tests. Without UsePerfData a killed JVM
// leaves no file behind. Logging at level info takes no measurable time.
func (c *Cluster) java(args ...string) *exec.Cmd {
	classes := filepath.Join(c.jars, "*")
	if c.opts.ClassPath != "" {
		classes += string(filepath.ListSeparator) + c.opts.ClassPath
	}
	flags := []string{
		"-XX:-UsePerfData",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
		"-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		"-cp", classes,
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
	}
	flags = append(flags, c.sharing()...)
	if c.opts.Issuer != "" {
		flags = append(flags, "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="+c.opts.Issuer+"/jwks")
	}
	if c.opts.Kerberos != nil {
		flags = append(flags, "-Djava.security.krb5.conf="+c.opts.Kerberos.Config)
	}
	return exec.Command(c.javaPath, append(flags, args...)...)
}
