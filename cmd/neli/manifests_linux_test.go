package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// manifest has the parts of Kubernetes' objects that the tests judge.
type manifest struct {
	Kind string
	Spec struct {
		Ports    []struct{ TargetPort string }
		Template struct {
			Spec struct {
				TerminationGracePeriodSeconds *int
				InitContainers, Containers    []container
			}
		}
	}
}

type container struct {
	Name          string
	Command, Args []string
	Env           []struct{ Name, Value string }
	Ports         []struct{ Name string }
	VolumeMounts  []struct{ Name, MountPath string }
}

func (c container) env(name string) string {
	for _, e := range c.Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

// manifests returns the objects of each file of deploy/kubernetes.
func manifests(t *testing.T) map[string][]manifest {
	t.Helper()
	files, err := filepath.Glob("../../deploy/kubernetes/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string][]manifest{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for d := yaml.NewDecoder(bytes.NewReader(bytes.ToLower(text))); ; { // the decoder expects names in lower case
			var m manifest
			err := d.Decode(&m)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, file)
			all[filepath.Base(file)] = append(all[filepath.Base(file)], m)
		}
	}
	return all
}

// Whether the pods fit Pod Security "restricted" is tested in examples/migration, which requires Kubernetes' modules.
func TestPodsLogInBySecretAndHaveTimeToEnd(t *testing.T) {
	pods := 0
	for file, objects := range manifests(t) {
		for _, m := range objects {
			if m.Kind != "deployment" {
				continue
			}
			pods++
			pod := m.Spec.Template.Spec
			logins := 0
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				if config := c.env("neli_config"); config != "" {
					logins++
					mounted := false
					for _, v := range c.VolumeMounts {
						mounted = mounted || v.Name == "kafka" && strings.HasPrefix(config, v.MountPath+"/")
					}
					require.True(t, mounted, "%s: %s has no %s", file, c.Name, config)
				}
				if runs := strings.Join(append(c.Command, c.Args...), " "); strings.Contains(runs+" ", "run ") {
					drain := 8 * time.Second // docs/cli.md
					if given := c.env("neli_drain"); given != "" {
						var err error
						drain, err = time.ParseDuration(given)
						require.NoError(t, err)
					}
					require.NotNil(t, pod.TerminationGracePeriodSeconds, file)
					require.GreaterOrEqual(t, time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second, drain+5*time.Second, file)
				}
			}
			require.Positive(t, logins, "%s shows no login", file)
		}
	}
	require.Equal(t, 4, pods)
}

// The Service of leader.yaml leads to the command's own port in wrapper.yaml, not to neli's page.
func TestLeadersServiceReachesTheCommand(t *testing.T) {
	all := manifests(t)
	target := all["leader.yaml"][0].Spec.Ports[0].TargetPort
	require.NotEqual(t, "neli", target)
	names := []string{}
	for _, p := range all["wrapper.yaml"][0].Spec.Template.Spec.Containers[0].Ports {
		names = append(names, p.Name)
	}
	require.Contains(t, names, target)
}
