package machine

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/goneli/neli/lab/chaos/member"
)

// Settings of a run.
const (
	Sentinels = "sentinels" // one on each member's host
	Prepare   = "prepare"   // members prepare roles, and stand by
)

// Settings returns the names of all settings.
func Settings() []string { return []string{Sentinels, Prepare} }

// Has reports whether a run has a setting.
func (o Options) Has(setting string) bool { return slices.Contains(o.With, setting) }

func (m *machine) socket(host string) string {
	return filepath.Join(m.Scratch, "sentinel-"+host, "socket")
}

// startSentinels starts one on each member's host. It lives until the run ends.
func (m *machine) startSentinels() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
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
		cmd := exec.Command(exe)
		cmd.Env, cmd.Stderr = append(os.Environ(), member.SentinelEnv+"="+string(text)), log
		_, err = m.nursery.StartBy(cmd, m.net.Host(host).Start)
		if err = errors.Join(err, log.Close()); err != nil {
			return err
		}
	}
	return nil
}
