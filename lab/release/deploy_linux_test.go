package release

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const deploy = "../../deploy"

// There is no docker where this test runs. It does what the Dockerfile does, with a folder as the image.
func TestImages(t *testing.T) {
	dockerfile, err := os.ReadFile(deploy + "/Dockerfile")
	require.NoError(t, err)
	image := build(t, dockerfile)
	stages := strings.Split(string(dockerfile), "FROM scratch AS ")[1:]
	require.Len(t, stages, 2, "an image has nothing but what is copied into it")
	for _, stage := range stages {
		name, commands, _ := strings.Cut(stage, "\n")
		require.Contains(t, commands, "COPY --from=build /out/"+name+" /"+name+"\n")
		require.Contains(t, commands, "ENTRYPOINT [\"/"+name+"\"]\n")
		user := regexp.MustCompile(`(?m)^USER (\d+:\d+)$`).FindStringSubmatch(commands)
		require.NotNil(t, user, "a number: Kubernetes cannot see of a name that it is not root's")
		require.NotRegexp(t, `^0+:`, user[1])

		binary, err := elf.Open(image + "/" + name)
		require.NoError(t, err)
		defer binary.Close()
		for _, p := range binary.Progs {
			require.NotEqual(t, elf.PT_INTERP, p.Type, "it is not static")
		}
		run := exec.Command("chroot", "--userspec="+user[1], image, "/"+name, "--version")
		if os.Geteuid() != 0 { // only root can change the root
			run = exec.Command(image+"/"+name, "--version")
		}
		out, err := run.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), name+" v9.8.7 ")
	}
}

// build runs the Dockerfile's first stage. It returns a folder with the commands in it.
func build(t *testing.T, dockerfile []byte) string {
	t.Helper()
	step := regexp.MustCompile(`(?m)^RUN (.*)$`).FindSubmatch(dockerfile)
	require.NotNil(t, step)
	image := t.TempDir()
	require.NoError(t, os.Chmod(image, 0o755)) // so that other users than root can read it
	cmd := exec.Command("sh", "-c", strings.Replace(string(step[1]), "OUT=/out", "OUT="+image, 1))
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "VERSION=v9.8.7")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return image
}

// The sidecar leads, reports that, and ends when it is told to.
func TestSidecar(t *testing.T) {
	dockerfile, err := os.ReadFile(deploy + "/Dockerfile")
	require.NoError(t, err)
	text, err := os.ReadFile(deploy + "/kubernetes/sidecar.yaml")
	require.NoError(t, err)
	var d appsv1.Deployment
	require.NoError(t, yaml.UnmarshalStrict(text, &d))
	container := d.Spec.Template.Spec.InitContainers[0]

	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	t.Cleanup(broker.Close)
	neli := build(t, dockerfile) + "/neli"
	address := freeAddress(t)
	args := slices.Clone(container.Args)
	for i, arg := range args {
		args[i] = strings.Replace(arg, "/neli", neli, 1)
	}
	sidecar := exec.Command(neli, args...)
	out, err := sidecar.StdoutPipe()
	require.NoError(t, err)
	sidecar.Stderr = os.Stderr
	sidecar.Env = os.Environ()
	for _, e := range container.Env {
		switch e.Name {
		case "NELI_LISTEN":
			e.Value = address
		case "NELI_NAME":
			e.Value = "pod-1"
		case "NELI_CONFIG": // of the Secret
			e.Value = filepath.Join(t.TempDir(), "client.properties")
			require.NoError(t, os.WriteFile(e.Value, []byte("bootstrap.servers="+broker.ListenAddrs()[0]+"\n"), 0o600))
		}
		sidecar.Env = append(sidecar.Env, e.Name+"="+e.Value)
	}
	require.NoError(t, sidecar.Start())
	t.Cleanup(func() { _ = sidecar.Process.Kill() })
	// It leads, so it has started neli watch, which prints who leads.
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "held by pod-1") {
		t.Log(lines.Text())
	}
	require.Contains(t, lines.Text(), "held by pod-1")
	r, err := http.Get("http://" + address + "/leader")
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, http.StatusOK, r.StatusCode)

	require.NoError(t, sidecar.Process.Signal(syscall.SIGTERM))
	require.NoError(t, sidecar.Wait())
}

// freeAddress returns an address that was free a moment ago. Its port lies below those that the system uses for
// outgoing connections, one of which could take it meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(17_000))
		if l, err := net.Listen("tcp", address); err == nil {
			require.NoError(t, l.Close())
			return address
		}
	}
	require.FailNow(t, "no port is free")
	return ""
}

// Manifests have only fields that Kubernetes knows. Others would be refused or ignored.
func TestManifests(t *testing.T) {
	files, err := filepath.Glob(deploy + "/kubernetes/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var kinds []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			var meta struct{ APIVersion, Kind string }
			require.NoError(t, yaml.Unmarshal(document, &meta))
			object := map[string]any{
				"v1 Service": new(corev1.Service), "v1 ConfigMap": new(corev1.ConfigMap), "v1 ServiceAccount": new(corev1.ServiceAccount),
				"apps/v1 Deployment": new(appsv1.Deployment), "policy/v1 PodDisruptionBudget": new(policyv1.PodDisruptionBudget),
				"rbac.authorization.k8s.io/v1 Role": new(rbacv1.Role), "rbac.authorization.k8s.io/v1 RoleBinding": new(rbacv1.RoleBinding),
			}[meta.APIVersion+" "+meta.Kind]
			require.NotNil(t, object, "%s: %+v", file, meta)
			require.NoError(t, yaml.UnmarshalStrict(document, object), "%s: %s", file, meta.Kind)
			kinds = append(kinds, meta.Kind)
			if d, ok := object.(*appsv1.Deployment); ok {
				handsOver(t, d)
			}
		}
	}
	require.Subset(t, kinds, []string{"Deployment", "Service", "ConfigMap", "Role"})
}

// handsOver requires that a pod has time to hand over, that its Deployment selects it, and that an outage of the brokers
// does not restart it.
func handsOver(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	require.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels, d.Name)
	pod := d.Spec.Template.Spec
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		if said := strings.Join(append(c.Command, c.Args...), " "); strings.Contains(said, "run") {
			require.Greater(t, *pod.TerminationGracePeriodSeconds, int64(30), d.Name)
		}
		// /healthz is 503 while no broker is reached. A restart does not help then, and after a few of them Kubernetes waits
		// for minutes before the next one, during which nobody may lead though the brokers are back.
		if c.LivenessProbe != nil {
			require.Equal(t, "/stats", c.LivenessProbe.HTTPGet.Path, d.Name)
		}
	}
}

// systemd itself verifies the units. A script stands in for the program that they start.
func TestUnits(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "neli")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	units, err := filepath.Glob(deploy + "/systemd/*.service")
	require.NoError(t, err)
	require.NotEmpty(t, units)
	args := []string{"verify", "--man=no"}
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		require.NoError(t, err)
		path := filepath.Join(dir, strings.Replace(filepath.Base(unit), "@.", "@report.", 1))
		require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte("/usr/local/bin/neli"), []byte(program)), 0o644))
		args = append(args, path)
	}
	out, err := exec.Command("systemd-analyze", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out))
}

// Only the leader's pod keeps the label by which the Service finds it.
func TestOnlyTheLeadersPodIsLabelled(t *testing.T) {
	for holder, want := range map[string]string{
		"b": "label pod/a neli-leader-\nlabel --overwrite pod/b neli-leader=true\n",
		"a": "label --overwrite pod/a neli-leader=true\n",
		"":  "label pod/a neli-leader-\n",
	} {
		// pod a has the label.
		calls, err := label(t, holder, "if [ \"$1\" = get ]; then echo pod/a; else echo \"$@\" >>\"$CALLS\"; fi\n")
		require.NoError(t, err)
		require.Equal(t, want, calls, "holder %q", holder)
	}
}

// If the pods that have the label cannot be listed, the former leader would keep it beside the new one: the script fails,
// neli watch ends, and its successor tries again.
func TestLabelFailsIfPodsCannotBeListed(t *testing.T) {
	calls, err := label(t, "b", "if [ \"$1\" = get ]; then exit 1; else echo \"$@\" >>\"$CALLS\"; fi\n")
	require.Error(t, err, "%s", calls)
	require.Empty(t, calls)
}

// label runs the script of leader.yaml with a kubectl that replaces Kubernetes. It returns the calls that kubectl noted.
func label(t *testing.T, holder, kubectl string) (calls string, err error) {
	t.Helper()
	text, err := os.ReadFile(deploy + "/kubernetes/leader.yaml")
	require.NoError(t, err)
	var script string
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var m corev1.ConfigMap
		if require.NoError(t, yaml.Unmarshal(document, &m)); m.Kind == "ConfigMap" {
			script = m.Data["label"]
		}
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/kubectl", []byte("#!/bin/sh\n"+kubectl), 0o755))
	require.NoError(t, os.WriteFile(dir+"/label", []byte(script), 0o755))
	require.NoError(t, os.WriteFile(dir+"/calls", nil, 0o644))
	cmd := exec.Command(dir + "/label")
	cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "CALLS=" + dir + "/calls", "NELI_HOLDER=" + holder}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	noted, noErr := os.ReadFile(dir + "/calls")
	require.NoError(t, noErr)
	return string(noted), err
}
