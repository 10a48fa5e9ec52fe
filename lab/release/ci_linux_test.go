package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// If a lane is killed, for example for lack of memory, its further stages do not run, and CI fails.
func TestCIFailsIfALaneIsKilled(t *testing.T) {
	script, err := os.ReadFile("../../.ci/run")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(dir+"/.ci", 0o755))
	require.NoError(t, os.WriteFile(dir+"/.ci/run", script, 0o755))
	for name, stub := range map[string]string{
		"make": `case $1 in -s) printf 'dies further\nother\n';; dies) kill -9 $PPID;; *) echo "$1" >>ran;; esac`,
		"java": "", "mvn": "", "gcc": "", "chromium": "", "systemd-analyze": "", "openssl": "", "apt-get": "",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+stub+"\n"), 0o755))
	}
	cmd := exec.Command("bash", dir+"/.ci/run")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	ran, _ := os.ReadFile(dir + "/ran")
	require.Equal(t, "lint\nbuilt\ntest\nother\n", string(ran), "%s", out)
	require.Error(t, err, "%s", out)
}
