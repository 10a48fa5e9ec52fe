package sentinel

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
)

var sound = Proof{Files: 1, Pidfd: true, Inode: 7, Peer: 7}

func registration(secret string) Registration {
	return Registration{Topic: "t", TopicID: "id", Group: "g", Process: ProcessID(secret), Secret: secret, Name: "n", T: testT, Rho: 0.0005}
}

func TestTheProcessIDIsAHashOfTheSecret(t *testing.T) {
	a, b := NewSecret(), NewSecret()
	require.NotEqual(t, a, b)
	require.Len(t, ProcessID(a), 26)
	require.NotEqual(t, ProcessID(a), ProcessID(b))
	require.Equal(t, ProcessID(a), ProcessID(a))
	reg := registration(a)
	reg.Secret = b
	_, err := NewRegistry(10).Register(reg, sound)
	require.ErrorIs(t, err, errNotItsSecret, "an id of another's secret is refused")
	require.Equal(t, "JFJWCRVUQVJR3VC3XYDXAYXB7J", ProcessID("secret of a member"), "the same in every version")
}

func TestFilesThatProveNothingAreRefused(t *testing.T) {
	for want, p := range map[error]Proof{
		errFiles:   {Files: 2, Pidfd: true},
		errNoPidfd: {Files: 1},
		errThread:  {Files: 1, Pidfd: true, Thread: true, Inode: 7, Peer: 7},
		errNotPeer: {Files: 1, Pidfd: true, Inode: 7, Peer: 8},
	} {
		r := NewRegistry(10)
		_, err := r.Register(registration("s"), p)
		require.ErrorIs(t, err, want)
		require.Zero(t, r.Members())
	}
	_, err := NewRegistry(10).Register(registration("s"), Proof{})
	require.ErrorIs(t, err, errFiles, "none at all")
	_, err = NewRegistry(10).Register(registration("s"), Proof{Files: 1, Pidfd: true})
	require.NoError(t, err, "an older kernel gives all pidfds the same inode")
}

// Go takes a path with an @ at its beginning for a name outside of the file system, where anybody may listen.
func TestASocketIsInADirectory(t *testing.T) {
	for path, want := range map[string]string{"": "must be the path", "@s": "no @", "a\x00": "no zero byte", strings.Repeat("s", 108): "107 bytes"} {
		require.ErrorContains(t, CheckSocket(path), want, "no socket")
	}
	for _, path := range []string{"s", "./@s", strings.Repeat("s", 107)} {
		require.NoError(t, CheckSocket(path))
	}
}

func TestARegistrationIsUntrusted(t *testing.T) {
	for what, change := range map[string]func(*Registration){
		"no group":    func(r *Registration) { r.Group = "" },
		"long name":   func(r *Registration) { r.Name = strings.Repeat("x", 300) },
		"no UTF-8":    func(r *Registration) { r.Topic = "\xff" },
		"long id":     func(r *Registration) { r.TopicID = strings.Repeat("x", 300) },
		"logs":        func(r *Registration) { r.Logs = 9 },
		"no T":        func(r *Registration) { r.T = 0 },
		"T":           func(r *Registration) { r.T = time.Hour },
		"rho":         func(r *Registration) { r.Rho = 1 },
		"NaN":         func(r *Registration) { r.Rho = math.NaN() },
		"no secret":   func(r *Registration) { r.Secret, r.Process = "", ProcessID("") },
		"long secret": func(r *Registration) { r.Secret = strings.Repeat("x", 300); r.Process = ProcessID(r.Secret) },
	} {
		reg := registration("s")
		change(&reg)
		_, err := NewRegistry(10).Register(reg, sound)
		require.Error(t, err, what)
	}
}

func TestDeathIsReportedOnce(t *testing.T) {
	r := NewRegistry(10)
	fresh, err := r.Register(registration("s"), sound)
	require.NoError(t, err)
	require.True(t, fresh)
	d, over, stale := r.Fired(ProcessID("s"), 0, 1)
	require.True(t, over)
	require.False(t, stale)
	require.Equal(t, Death{Place: Place{Topic: "t", TopicID: "id", Group: "g"}, Process: ProcessID("s"), Name: "n", T: testT}, d)
	_, again, _ := r.Fired(ProcessID("s"), 0, 1)
	require.False(t, again, "nobody dies twice")
	require.Zero(t, r.Members())
}

func TestReconnectingMemberIsCountedOnce(t *testing.T) {
	r := NewRegistry(2)
	for i := range 1000 {
		fresh, err := r.Register(numbered(i), sound)
		require.NoError(t, err)
		require.Equal(t, i == 0, fresh)
	}
	require.Equal(t, 1, r.Members(), "and does not count twice")
	other := sound
	other.Inode, other.Peer = 8, 8
	_, err := r.Register(numbered(1000), other)
	require.ErrorIs(t, err, errAnother, "another process with the same id is refused")
}

// of is the proof of the i-th process.
func of(i int) Proof {
	return Proof{Files: 1, Pidfd: true, Inode: uint64(100 + i), Peer: uint64(100 + i)}
}

// One process must not use up what all on the machine need.
func TestMembersOfOneProcessAreLimited(t *testing.T) {
	for what, p := range map[string]Proof{"by its pidfd": sound, "by its id, on older kernels": {Files: 1, Pidfd: true, PID: 7}} {
		r := NewRegistry(MaxMembers)
		register := func(secret, group string, p Proof) error {
			reg := registration(secret)
			reg.Group = group
			_, err := r.Register(reg, p)
			return err
		}
		for i := range maxOwnedPlaces {
			require.NoError(t, register(fmt.Sprint(i), fmt.Sprint(i), p))
		}
		require.ErrorIs(t, register("s", "one more", p), errGroups, "%s: too many groups of one process", what)
		require.NoError(t, register("s", "one more", of(1)), "another process")
		r.Goodbye(ProcessID("0"))
		require.NoError(t, register("t", "one more", p), "%s: who has said goodbye has made room", what)
		for i := range MaxOwned - maxOwnedPlaces {
			require.NoError(t, register(fmt.Sprint("more", i), "1", p))
		}
		require.ErrorIs(t, register("u", "1", p), errOwned, "%s: too many members of one process", what)
		require.NoError(t, register("u", "1", of(2)), "another process")
		moved := registration("1")
		moved.Group, moved.Number = "another group", 1
		_, err := r.Register(moved, p)
		require.Error(t, err, "nor may it have another group")
		for id := range r.members {
			r.Goodbye(id)
		}
		require.Empty(t, r.owned)
	}
	r := NewRegistry(MaxMembers)
	for i := range MaxOwned + 1 {
		_, err := r.Register(registration(fmt.Sprint(i)), Proof{Files: 1, Pidfd: true})
		require.NoError(t, err, "nothing tells whether this is one process")
	}
}

func TestTooManyMembersAreRefused(t *testing.T) {
	r := NewRegistry(MaxMembers)
	for i := range MaxMembers {
		_, err := r.Register(registration(fmt.Sprint(i)), of(i))
		require.NoError(t, err)
	}
	_, err := r.Register(registration("one more"), sound)
	require.ErrorIs(t, err, errFull)
	require.True(t, r.Goodbye(ProcessID("0")))
	_, err = r.Register(registration("one more"), sound)
	require.NoError(t, err, "who has said goodbye has made room")
}

func TestGoodbyeEndsARegistration(t *testing.T) {
	r := NewRegistry(10)
	_, err := r.Register(registration("s"), sound)
	require.NoError(t, err)
	require.True(t, r.Goodbye(ProcessID("s")))
	_, over, _ := r.Fired(ProcessID("s"), 0, 1)
	require.False(t, over, "it has given back what it held")
}

// The command of neli run outlives its elector.
func TestDeadMemberIsReleasedOnlyWhenItsCommandIsOver(t *testing.T) {
	r := NewRegistry(10)
	id := ProcessID("s")
	_, err := r.Guard(guardian{id, "s", 0})
	require.ErrorIs(t, err, errNoMember)
	_, err = r.Register(registration("s"), sound)
	require.NoError(t, err)
	_, err = r.Guard(guardian{id, "another", 0})
	require.ErrorIs(t, err, errNotItsSecret)
	one, err := r.Guard(guardian{id, "s", 0})
	require.NoError(t, err)
	two, err := r.Guard(guardian{id, "s", 0})
	require.NoError(t, err)
	_, over, _ := r.Fired(id, 0, 1)
	require.False(t, over, "two commands may run yet")
	_, over = r.Clear(id, two)
	require.False(t, over, "one command may run yet")
	d, over := r.Clear(id, one)
	require.True(t, over, "the guards have said that nothing is left")
	require.Equal(t, id, d.Process)
}

// A restarted sentinel has no connection to the guard. The member tells it that a command runs.
func TestCommandWithoutAKnownGuardCountsAsRunning(t *testing.T) {
	r := NewRegistry(10)
	id := ProcessID("s")
	reg := registration("s")
	reg.Running = true
	_, err := r.Register(reg, sound)
	require.NoError(t, err)
	_, over, _ := r.Fired(id, 0, 0)
	require.False(t, over, "nobody says that nothing is left")
	require.Zero(t, r.Expire(clock.Mono(29*time.Minute)))
	require.Equal(t, 1, r.Expire(clock.Mono(31*time.Minute)), "nothing stays for ever")

	_, err = r.Register(reg, sound)
	require.NoError(t, err)
	reg.Running, reg.Number = false, 1
	_, err = r.Register(reg, sound)
	require.NoError(t, err)
	_, over, _ = r.Fired(id, 1, 0)
	require.True(t, over, "the member had said itself that nothing is left")
}

// A guard's last word may be read late. By then the member may have registered again, and another command may run.
func TestAGuardOfAFormerRegistrationClearsNothing(t *testing.T) {
	id := ProcessID("s")
	again := func(r *Registry, running bool) {
		reg := numbered(1)
		reg.Running = running
		_, err := r.Register(reg, sound)
		require.NoError(t, err)
		if !running {
			_, err = r.Guard(guardian{id, "s", 1})
			require.NoError(t, err)
		}
	}
	for what, again := range map[string]func(r *Registry){
		"forgotten and registered anew":  func(r *Registry) { r.Goodbye(id); again(r, false) },
		"registered anew":                func(r *Registry) { again(r, false) },
		"registered anew with a command": func(r *Registry) { again(r, true) },
	} {
		t.Run(what, func(t *testing.T) {
			r := NewRegistry(10)
			_, err := r.Register(registration("s"), sound)
			require.NoError(t, err)
			former, err := r.Guard(guardian{id, "s", 0})
			require.NoError(t, err)
			again(r)
			_, over := r.Clear(id, former)
			require.False(t, over)
			_, over, _ = r.Fired(id, 1, 0)
			require.False(t, over, "the present command may run yet")
		})
	}
}

// A packet of a former registration may be read when the member has registered again.
func TestPacketsOfAFormerRegistrationHaveNoEffect(t *testing.T) {
	id := ProcessID("s")
	r := NewRegistry(10)
	running := numbered(2)
	running.Running = true
	_, err := r.Register(running, sound)
	require.NoError(t, err)
	for _, late := range []int{1, 2} {
		_, err = r.Register(numbered(late), sound)
		require.ErrorIs(t, err, errFormer, "a command may run that the former registration does not know")
	}
	_, err = r.Guard(guardian{id, "s", 1})
	require.ErrorIs(t, err, errNoMember, "nobody would ever clear this command")
	_, over := r.Settled(id, 1)
	require.False(t, over)
	require.True(t, r.members[id].unknown, "a command may run whose guard has not registered")
	_, over, stale := r.Fired(id, 1, 0)
	require.False(t, over)
	require.True(t, stale, "what the member said since has to be read first")
	require.False(t, r.members[id].fired)

	_, err = r.Guard(guardian{id, "s", 2})
	require.NoError(t, err)
	_, over = r.Settled(id, 2)
	require.False(t, over)
	_, over, _ = r.Fired(id, 2, 0)
	require.False(t, over, "the command may run yet")
	_, over = r.Clear(id, 1)
	require.True(t, over)
}

// numbered is the i-th registration of a process.
func numbered(i int) Registration {
	reg := registration("s")
	reg.Number = uint64(i)
	return reg
}

func TestCommandsOfAMemberAreLimited(t *testing.T) {
	r := NewRegistry(10)
	_, err := r.Register(registration("s"), sound)
	require.NoError(t, err)
	for range maxGuards {
		_, err = r.Guard(guardian{ProcessID("s"), "s", 0})
		require.NoError(t, err)
	}
	_, err = r.Guard(guardian{ProcessID("s"), "s", 0})
	require.ErrorIs(t, err, errFull)
}
