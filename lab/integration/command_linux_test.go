package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/nursery"
)

// commandTimeout is T in the test of the command, so long that no busy machine ends the first lease or delays a beat by
// T/4.
const commandTimeout = 6 * time.Second

// commandJob is a job that locks a file as long as it lives. It reports an overlap if another job has the lock.
const commandJob = `exec 9>>"$WITNESS"; flock -n 9 || { echo overlap; exit 99; }
echo started $NELI_TOKEN $NELI_GROUP $$; exec sleep 1000`

var commandStarted = regexp.MustCompile(`(?m)^started (\d+) (\S+) (\d+)$`)

// The command neli with a real Kafka. (Its own module has more tests, with a Kafka in memory.) The job gets its token.
// When its elector is killed, the next job starts only when the first one is dead, and with a higher token.
func TestCommandRuns(t *testing.T) {
	bootstrap := kafkatest.Bootstrap(t)
	dir := t.TempDir()
	program := buildCommand(t)
	children, err := nursery.New("")
	require.NoError(t, err)
	t.Cleanup(children.Close)
	group := fmt.Sprint("command-", time.Now().UnixNano())
	join := func(name string) *commandMember {
		m := &commandMember{t: t, name: name, said: filepath.Join(dir, name+".out")}
		m.join(children, exec.Command(program, "run", "--bootstrap", bootstrap, "--group", group, "--name", name,
			"--timeout", commandTimeout.String(), "--log-level", "info", "--", "sh", "-c", commandJob), filepath.Join(dir, "witness"))
		return m
	}
	leader, other := join("a"), join("b")
	hostileUntil(t, time.Minute, func() bool { return leader.runs() || other.runs() }, "a job runs")
	if other.runs() {
		leader, other = other, leader
	}
	first := leader.job()
	require.Equal(t, group, first.group)
	assert.False(t, other.runs())

	began := time.Now()
	require.NoError(t, leader.process.Signal(syscall.SIGKILL))
	hostileUntil(t, time.Minute, other.runs, "the next job runs")
	took := time.Since(began)
	t.Logf("elector killed: the next job started %v later", took.Round(time.Millisecond))
	second := other.job()
	require.False(t, nursery.Alive(first.pid))
	require.Greater(t, second.token, first.token)
	require.Greater(t, took, commandTimeout/2, "the lease was waited for: its beat is a quarter of T old at most")

	require.NoError(t, other.process.Signal(syscall.SIGTERM))
	select {
	case <-other.process.Done():
		require.Equal(t, "exit status 143", other.process.State(), "the job's own end by a signal")
	case <-time.After(time.Minute):
		require.FailNow(t, "it does not end")
	}
	require.False(t, nursery.Alive(second.pid))
	historyTells(t, program, bootstrap, group, leader.name, other.name)
}

// commandMember is a neli that runs the job while it leads.
type commandMember struct {
	t       *testing.T
	name    string
	said    string // the file with the job's output
	process *nursery.Process
}

func (m *commandMember) join(children *nursery.Nursery, cmd *exec.Cmd, witness string) {
	m.t.Helper()
	said, err := os.Create(m.said)
	require.NoError(m.t, err)
	defer said.Close()
	logged, err := os.Create(m.said + ".log")
	require.NoError(m.t, err)
	defer logged.Close()
	cmd.Env = append(os.Environ(), "WITNESS="+witness)
	cmd.Stdout, cmd.Stderr = said, logged
	m.process, err = children.Start(cmd)
	require.NoError(m.t, err)
	m.t.Cleanup(func() {
		if m.t.Failed() {
			log, _ := os.ReadFile(logged.Name())
			m.t.Logf("%s said\n%s\nand logged\n%s", m.name, m.output(), log)
		}
	})
}

func (m *commandMember) output() string {
	text, err := os.ReadFile(m.said)
	require.NoError(m.t, err)
	return string(text)
}

// runs reports whether its job has started. It fails the test if the job reports an overlap.
func (m *commandMember) runs() bool {
	text := m.output()
	require.NotContains(m.t, text, "overlap")
	return commandStarted.MatchString(text)
}

// startedJob is what a job prints when it starts.
type startedJob struct {
	token int64
	group string
	pid   int
}

func (m *commandMember) job() startedJob {
	said := commandStarted.FindStringSubmatch(m.output())
	token, err := strconv.ParseInt(said[1], 10, 64)
	require.NoError(m.t, err)
	pid, err := strconv.Atoi(said[3])
	require.NoError(m.t, err)
	return startedJob{token, said[2], pid}
}
