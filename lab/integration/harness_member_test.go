package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/nursery"
	"github.com/goneli/neli/lab/witness"
)

// The parent's side of a member.

// member is a member process as a test sees it.
type member struct {
	*child.Process
	t      *testing.T
	params memberParams
	dir    string // of its files

	mu   sync.Mutex
	told []eventLine
}

// members is the nursery of all members. They end with this process.
var members = sync.OnceValues(func() (*nursery.Nursery, error) { return nursery.New("") })

// startMember starts a member with its files in dir. The caller must call Kill.
func startMember(t *testing.T, dir string, params memberParams) *member {
	t.Helper()
	m := &member{t: t, params: params, dir: dir}
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(either(params.program, exe))
	cmd.Env = append(os.Environ(), envMember+"=1")
	n, err := members()
	require.NoError(t, err)
	m.Process, err = child.New(cmd, params, child.Options{Nursery: n, Dir: dir, Name: params.Name, Keep: true, Hear: m.hear})
	require.NoError(t, err)
	return m
}

func (m *member) hear(line []byte) error {
	var e eventLine
	err := json.Unmarshal(line, &e)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, e)
	return err
}

// say sends a command to the member.
func (m *member) say(c command) {
	m.t.Helper()
	require.NoError(m.t, m.Say(c), m.tail(20))
}

func (m *member) String() string { return m.Name }

// suspend stops the member at once, and returns when that began. The member has stopped when it takes no more samples.
func (m *member) suspend() time.Duration {
	m.t.Helper()
	at, err := m.Suspend()
	require.NoError(m.t, err)
	last, since := m.Passes(), witness.Now()
	waitUntil(m.t, patience, fmt.Sprintf("%s is suspended", m), func() bool {
		if now := m.Passes(); now != last {
			last, since = now, witness.Now()
		}
		return witness.Now()-since > 20*time.Millisecond
	})
	return at
}

// wake resumes a suspended member, and returns when that began.
func (m *member) wake() time.Duration {
	m.t.Helper()
	at, err := m.Wake()
	require.NoError(m.t, err)
	return at
}

// close closes the member's Nelis, waits for that, ends the process, and returns when closing began.
func (m *member) close(within time.Duration) time.Duration {
	m.t.Helper()
	at := m.beginClose()
	m.endClose(within)
	return at
}

// beginClose tells the member to close its Nelis, and returns when it did so.
func (m *member) beginClose() time.Duration {
	m.t.Helper()
	at := witness.Now()
	for i := range m.params.Contenders {
		m.say(command{Do: "close", Contender: i})
	}
	return at
}

// endClose waits until Close has returned, without an error, and the process has ended.
func (m *member) endClose(within time.Duration) {
	m.t.Helper()
	n := len(m.params.Contenders)
	waitUntil(m.t, within, fmt.Sprintf("Close of %s returns", m), func() bool { return len(m.events("closed")) == n })
	for _, e := range m.events("closed") {
		require.Empty(m.t, e.Error, "Close of %s", m)
	}
	m.say(command{Do: "exit"})
	waitUntil(m.t, patience, fmt.Sprintf("%s ends", m), func() bool { return !m.Running() })
}

// sampledMore waits until the member has taken n more samples of each role.
func (m *member) sampledMore(n int64) {
	m.t.Helper()
	from := m.Passes()
	waitUntil(m.t, patience, fmt.Sprintf("%s takes %d more samples", m, n), func() bool {
		return m.Passes() >= from+n
	})
}

// readsMore waits until the member has read n more records.
func (m *member) readsMore(n int64, within time.Duration) {
	m.t.Helper()
	from := m.Records(0)
	waitUntil(m.t, within, fmt.Sprintf("%s reads %d more records", m, n), func() bool { return m.Records(0) >= from+n })
}

// leads reports whether the member says now that it leads the role, and with which token. A suspended or dead member says
// nothing.
func (m *member) leads(contender, role int) (int64, bool) {
	answer := m.Answers(contender, role, time.Second)
	return answer, answer != witness.No
}

// answeredSince returns when the member's last answer was first sampled. A pause of sampling does not change the answer.
func (m *member) answeredSince(contender, role int) (since time.Duration) {
	var answer int64
	for _, r := range m.Samples.Runs() {
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
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.told), func(e eventLine) bool { return len(what) > 0 && !slices.Contains(what, e.What) })
}

// awaits waits for an event of that kind and returns the last one.
func (m *member) awaits(what string, within time.Duration) eventLine {
	m.t.Helper()
	waitUntil(m.t, within, fmt.Sprintf("%s is told: %s", m, what), func() bool { return len(m.events(what)) > 0 })
	found := m.events(what)
	return found[len(found)-1]
}

// log returns what the member has logged.
func (m *member) log() []byte {
	content, err := os.ReadFile(filepath.Join(m.dir, m.Name+".log"))
	require.NoError(m.t, err)
	return content
}

// logged returns how many lines of the member's log hold the text.
func (m *member) logged(text string) int { return bytes.Count(m.log(), []byte(text)) }

// warnings returns the lines that the member has logged at Warn.
func (m *member) warnings() (lines []string) {
	for line := range strings.Lines(string(m.log())) {
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
	printed, _ := os.ReadFile(filepath.Join(m.dir, m.Name+".stderr"))
	lines := strings.Split(strings.TrimSpace(string(m.log())), "\n")
	return string(printed) + strings.Join(lines[max(0, len(lines)-n):], "\n")
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
