package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/nursery"
	"github.com/goneli/neli/lab/witness"
)

// The parent's side of a member, which is a process that gets commands and is watched.

// member is a member process as its parent sees it.
type member struct {
	t       *testing.T
	params  memberParams
	dir     string
	process *nursery.Process
	stdin   io.WriteCloser
	samples *witness.Samples
	done    chan struct{} // closed when it has ended and died is known

	born, died time.Duration // the earliest start and the latest end; died is set once done is closed
	suspended  bool
	slept      time.Duration // while suspended, in all
	stopped    time.Duration // when it was suspended last
}

// members starts members, as long as this process lives.
var members = sync.OnceValues(func() (*nursery.Nursery, error) { return nursery.New("") })

// startMember starts a member with a directory of its own below dir. The caller must call reap.
func startMember(t *testing.T, dir string, params memberParams) *member {
	t.Helper()
	m := &member{t: t, params: params, dir: filepath.Join(dir, params.Name), done: make(chan struct{})}
	require.NoError(t, os.Mkdir(m.dir, 0o755))
	var err error
	m.samples, err = openSamples(m.dir)
	require.NoError(t, err)
	exe := params.program
	if exe == "" {
		exe, err = os.Executable()
		require.NoError(t, err)
	}
	output, err := os.Create(filepath.Join(m.dir, "output"))
	require.NoError(t, err)
	defer output.Close() // the member has its own descriptor

	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envMember+"="+m.dir)
	cmd.Stdout, cmd.Stderr = output, output
	m.stdin, err = cmd.StdinPipe()
	require.NoError(t, err)
	n, err := members()
	require.NoError(t, err)
	m.born = witness.Now()
	m.process, err = n.Start(cmd)
	require.NoError(t, err)
	go func() {
		<-m.process.Done() // how it ended does not matter: mostly by SIGKILL
		m.died = witness.Now()
		close(m.done)
	}()
	m.say(params)
	return m
}

// say writes one value to the member.
func (m *member) say(v any) {
	m.t.Helper()
	b, err := json.Marshal(v)
	require.NoError(m.t, err)
	_, err = m.stdin.Write(b)
	require.NoError(m.t, err, "%s does not listen:\n%s", m.params.Name, m.tail(20))
}

func (m *member) String() string { return m.params.Name }

func (m *member) running() bool {
	select {
	case <-m.done:
		return false
	default:
		return true
	}
}

// signal returns the time just before.
func (m *member) signal(sig syscall.Signal) time.Duration {
	m.t.Helper()
	at := witness.Now()
	require.NoError(m.t, m.process.Signal(sig), "%s: %v", m, sig)
	return at
}

// kill ends the member as a crash would and returns when that began.
func (m *member) kill() time.Duration {
	m.t.Helper()
	at := m.signal(syscall.SIGKILL)
	<-m.done
	return at
}

// suspend stops the member at once, and returns when that began. The member has stopped when it takes no more samples.
func (m *member) suspend() time.Duration {
	m.t.Helper()
	at := m.signal(syscall.SIGSTOP)
	m.suspended, m.stopped = true, at
	last, since := m.passes(), witness.Now()
	waitUntil(m.t, patience, fmt.Sprintf("%s is suspended", m), func() bool {
		if now := m.passes(); now != last {
			last, since = now, witness.Now()
		}
		return witness.Now()-since > 20*time.Millisecond
	})
	return at
}

// wake resumes a suspended member, and returns when that began.
func (m *member) wake() time.Duration {
	m.t.Helper()
	at := m.signal(syscall.SIGCONT)
	m.suspended, m.slept = false, m.slept+at-m.stopped
	return at
}

// close closes the member's Nelis, waits for that, ends the process, and returns when closing began.
func (m *member) close(within time.Duration) time.Duration {
	m.t.Helper()
	at := m.beginClose()
	m.endClose(within)
	return at
}

// beginClose has the member's Nelis closed.
func (m *member) beginClose() time.Duration {
	m.t.Helper()
	at := witness.Now()
	for i := range m.params.Contenders {
		m.say(command{Do: "close", Contender: i})
	}
	return at
}

// endClose waits until Close has returned, without an error, and the process has
// ended.
func (m *member) endClose(within time.Duration) {
	m.t.Helper()
	n := len(m.params.Contenders)
	waitUntil(m.t, within, fmt.Sprintf("Close of %s returns", m), func() bool { return len(m.events("closed")) == n })
	for _, e := range m.events("closed") {
		require.Empty(m.t, e.Error, "Close of %s", m)
	}
	m.say(command{Do: "exit"})
	waitUntil(m.t, patience, fmt.Sprintf("%s ends", m), func() bool { return !m.running() })
}

// passes returns how often the member has sampled all roles.
func (m *member) passes() int64 { return m.samples.Noted(notePasses) }

// sampledMore waits until the member has taken n more samples of each role.
func (m *member) sampledMore(n int64) {
	m.t.Helper()
	from := m.passes()
	waitUntil(m.t, patience, fmt.Sprintf("%s takes %d more samples", m, n), func() bool {
		return m.passes() >= from+n
	})
}

// records returns the number of records that contender i has read from its topic.
func (m *member) records(i int) int64 { return m.samples.Noted(noteRecords + i) }

// readsMore waits until the member has read n more records.
func (m *member) readsMore(n int64, within time.Duration) {
	m.t.Helper()
	from := m.records(0)
	waitUntil(m.t, within, fmt.Sprintf("%s reads %d more records", m, n), func() bool { return m.records(0) >= from+n })
}

// leads reports whether the member says now that it leads the role, and with which token. A suspended or dead member says
// nothing.
func (m *member) leads(contender, role int) (int64, bool) {
	if m.suspended || !m.running() {
		return 0, false
	}
	r, ok := m.samples.Latest(contender, role)
	return r.Answer, ok && r.Answer != witness.No && witness.Now()-r.Last.After < time.Second
}

// answeredSince returns when the member's last answer was first sampled. A pause of sampling does not change the answer.
func (m *member) answeredSince(contender, role int) (since time.Duration) {
	var answer int64
	for _, r := range m.samples.Runs() {
		if r.Neli != contender || r.Role != role {
			continue
		}
		if since == 0 || r.Answer != answer {
			since, answer = r.First.After, r.Answer
		}
	}
	return since
}

// events returns the events that the member has reported so far: those of these kinds, or all.
func (m *member) events(what ...string) []eventLine {
	m.t.Helper()
	content, err := os.ReadFile(filepath.Join(m.dir, eventsName))
	if errors.Is(err, os.ErrNotExist) {
		return nil // it has not begun
	}
	require.NoError(m.t, err)
	var out []eventLine
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written
		}
		var e eventLine
		require.NoError(m.t, json.Unmarshal(line, &e), "%s: %s", m, line)
		if len(what) == 0 || slices.Contains(what, e.What) {
			out = append(out, e)
		}
	}
	return out
}

// awaits waits for an event of that kind and returns the last one.
func (m *member) awaits(what string, within time.Duration) eventLine {
	m.t.Helper()
	waitUntil(m.t, within, fmt.Sprintf("%s is told: %s", m, what), func() bool { return len(m.events(what)) > 0 })
	found := m.events(what)
	return found[len(found)-1]
}

// logged returns how many lines of the member's log hold the text.
func (m *member) logged(text string) int {
	content, err := os.ReadFile(filepath.Join(m.dir, logName))
	if err != nil {
		return 0
	}
	return bytes.Count(content, []byte(text))
}

// warnings returns the lines that the member has logged at Warn.
func (m *member) warnings() (lines []string) {
	content, err := os.ReadFile(filepath.Join(m.dir, logName))
	require.NoError(m.t, err)
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, "level=WARN") {
			lines = append(lines, line)
		}
	}
	return lines
}

// logs waits until the text is in the member's log n times.
func (m *member) logs(text string, n int, within time.Duration) {
	m.t.Helper()
	waitUntil(m.t, within, fmt.Sprintf("%s logs %q %d times", m, text, n), func() bool { return m.logged(text) >= n })
}

// tail returns the last lines of the member's log, after whatever it printed.
func (m *member) tail(n int) string {
	printed, _ := os.ReadFile(filepath.Join(m.dir, "output"))
	logged, _ := os.ReadFile(filepath.Join(m.dir, logName))
	lines := strings.Split(strings.TrimSpace(string(logged)), "\n")
	return string(printed) + strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// reap kills the member, whatever state it is in.
func (m *member) reap() {
	m.process.Kill()
	<-m.done
	_ = m.stdin.Close()
}

// patience is how long a short step may take on a busy machine.
const patience = time.Minute

// waitUntil waits for a condition, which it checks every two milliseconds.
func waitUntil(t *testing.T, within time.Duration, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := witness.Now() + within; !cond(); <-tick.C {
		if witness.Now() > deadline {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// waitPast waits until the clock has passed at, to see that something does not happen meanwhile.
func waitPast(t *testing.T, at time.Duration) {
	t.Helper()
	waitUntil(t, at-witness.Now()+patience, "time passes", func() bool { return witness.Now() > at })
}
