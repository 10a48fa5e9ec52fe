package peers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheLargestBallotOutlivesTheHost(t *testing.T) {
	file := filepath.Join(t.TempDir(), "top")
	c := Config{Hosts: Hosts(t, 1), HeartbeatTimeout: testTimeout}
	own := c
	own.Self, own.TopFile = "a", file
	host := startHost(t, own)
	m := join(t, c)
	m.begun(t)
	assert.Zero(t, m.view(0).top)
	for _, ballot := range []int64{7, 1_795_371_681_714_425, 9} {
		require.NoError(t, m.sure(0, "x", ballot))
	}
	same := join(t, c)
	same.begun(t)
	assert.EqualValues(t, 1_795_371_681_714_425, same.view(0).top)

	host.kill(t)
	startHost(t, own)
	later := join(t, c)
	later.begun(t)
	assert.EqualValues(t, 1_795_371_681_714_425, later.view(0).top, "the empty log has lost its largest ballot")
	left, err := filepath.Glob(file + ".*")
	require.NoError(t, err)
	assert.Empty(t, left, "a temporary file is left")
}

func TestWithoutAFileARestartForgetsBallots(t *testing.T) {
	c := Config{Hosts: Hosts(t, 1), HeartbeatTimeout: testTimeout}
	hosts := startHosts(t, c)
	m := join(t, c)
	m.begun(t)
	require.NoError(t, m.sure(0, "x", 7))
	hosts["a"].kill(t)
	startHosts(t, c)
	later := join(t, c)
	later.begun(t)
	assert.Zero(t, later.view(0).top)
}

func TestImpossibleBallotsAreRefused(t *testing.T) {
	c := Config{Hosts: Hosts(t, 1), HeartbeatTimeout: testTimeout}
	startHosts(t, c)
	m := join(t, c)
	m.begun(t)
	for _, ballot := range []int64{-1, maxBallot + 1} {
		require.ErrorContains(t, m.sure(0, "x", ballot), "an impossible ballot")
	}
}

func TestUnusableTopFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) string {
		file := filepath.Join(dir, "top")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	_, err := openTop(write(""), "g", "a")
	require.ErrorContains(t, err, "is damaged")
	_, err = openTop(write(`{"group":"g","host":"a","top":-1}`), "g", "a")
	require.ErrorContains(t, err, "is damaged")
	_, err = openTop(write(`{"group":"g","host":"a","ballot":7}`), "g", "a")
	require.ErrorContains(t, err, "is damaged", "a file without a ballot counts as ballot 0")
	_, err = openTop(write(`{"group":"g","host":"b","top":1}`), "g", "a")
	require.ErrorContains(t, err, `is of host "b" of group "g", and this is host "a" of group "g"`)
	_, err = openTop(filepath.Join(dir, "nowhere", "top"), "g", "a")
	require.ErrorContains(t, err, "no such file")
	_, err = openTop(dir, "g", "a")
	require.ErrorContains(t, err, "TopFile")
}

// A host that moves gets the file of the former one. The file's name is so long that not even the superuser
// can make a temporary file beside it.
func TestATopFileThatCannotBeWrittenIsFoundAtTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), strings.Repeat("t", 255))
	require.NoError(t, os.WriteFile(file, []byte(`{"group":"g","host":"a","top":7}`), 0o600))
	_, err := openTop(file, "g", "a")
	require.ErrorContains(t, err, "TopFile", "the host would refuse each record that raises the ballot")
}

// A link to the file stays a link: its target may be on a disk that outlives the link's.
func TestALinkToTheTopFileStays(t *testing.T) {
	kept, dir := filepath.Join(t.TempDir(), "kept"), t.TempDir()
	link := filepath.Join(dir, "top")
	require.NoError(t, os.Symlink(kept, link))
	_, err := openTop(link, "g", "a")
	require.ErrorContains(t, err, "is a link to a file that cannot be found: name that file instead")

	_, err = openTop(kept, "g", "a")
	require.NoError(t, err)
	linked, err := openTop(link, "g", "a")
	require.NoError(t, err)
	require.NoError(t, linked.raise(7))
	again, err := openTop(kept, "g", "a")
	require.NoError(t, err)
	require.EqualValues(t, 7, again.known())
	to, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, kept, to)
}

// While another process serves at the address, the largest ballot may still rise. So the file is
// read, and made, only by the process that listens.
func TestTheFileBelongsToTheProcessThatListens(t *testing.T) {
	c := Config{Hosts: Hosts(t, 1), HeartbeatTimeout: testTimeout}
	startHosts(t, c)
	own := c
	own.Self, own.TopFile, own.Group = "a", filepath.Join(t.TempDir(), "top"), "test"
	require.ErrorContains(t, ListenAndServe(t.Context(), own), "cannot listen")
	require.NoFileExists(t, own.TopFile)
}

func TestHostThatCannotUseItsFileStopsListening(t *testing.T) {
	own := Config{Hosts: Hosts(t, 1), Self: "a", Group: "test", TopFile: t.TempDir()}
	require.ErrorContains(t, ListenAndServe(t.Context(), own), "TopFile")
	own.TopFile = ""
	startHost(t, own)
}

func TestRecordIsRefusedIfItsBallotCannotBeStored(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	require.NoError(t, os.Mkdir(dir, 0o700))
	c := Config{Hosts: Hosts(t, 1), HeartbeatTimeout: testTimeout}
	own := c
	own.Self, own.TopFile = "a", filepath.Join(dir, "top")
	host := startHost(t, own)
	m := join(t, c)
	m.begun(t)
	require.NoError(t, os.RemoveAll(dir))
	for range 5 {
		require.ErrorContains(t, m.sure(0, "x", 7), "TopFile")
	}
	const line = "record refused: the file of the largest ballot cannot be written"
	host.journal.await(t, line)
	assert.Equal(t, 1, strings.Count(host.journal.String(), line), "each refused record is logged")
	m.mustAppend(t, 0, "records that raise no ballot are appended")
}

func TestRecordThatRaisesNoBallotDoesNotWaitForTheDisk(t *testing.T) {
	at := &top{file: "top"}
	at.mu.Lock() // as while a ballot is being written
	defer at.mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- at.raise(0) }()
	require.NoError(t, reported(t, done))
}
