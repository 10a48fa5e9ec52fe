package migration

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// objects are the kinds that deploy/kubernetes may contain.
var objects = map[string]func() any{
	"Deployment":     func() any { return &appsv1.Deployment{} },
	"Service":        func() any { return &corev1.Service{} },
	"ConfigMap":      func() any { return &corev1.ConfigMap{} },
	"ServiceAccount": func() any { return &corev1.ServiceAccount{} },
	"Role":           func() any { return &rbacv1.Role{} },
	"RoleBinding":    func() any { return &rbacv1.RoleBinding{} },

	"PodDisruptionBudget": func() any { return &policyv1.PodDisruptionBudget{} },
}

// TestKubernetesAllowsThePodsInRestrictedNamespaces gives the manifests to Kubernetes' own decoder, which is strict
// here, and their pods to its own evaluator. The test is in this module because it requires Kubernetes' modules anyway.
func TestKubernetesAllowsThePodsInRestrictedNamespaces(t *testing.T) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	require.NoError(t, err)
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	files, err := filepath.Glob("../../deploy/kubernetes/*.yaml")
	require.NoError(t, err)
	pods := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
			document, err := r.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, file)
			var kind metav1.TypeMeta
			require.NoError(t, yaml.Unmarshal(document, &kind), file)
			require.Contains(t, objects, kind.Kind, file)
			object := objects[kind.Kind]()
			require.NoError(t, yaml.UnmarshalStrict(document, object), file)
			if d, ok := object.(*appsv1.Deployment); ok {
				pods++
				verdict := policy.AggregateCheckResults(checks.EvaluatePod(restricted, &d.Spec.Template.ObjectMeta, &d.Spec.Template.Spec))
				require.True(t, verdict.Allowed, "%s, %s: %s", file, d.Name, verdict.ForbiddenDetail())
			}
		}
	}
	require.Equal(t, 4, pods)
}

var linked = regexp.MustCompile(`\]\(\.\./examples/migration/([a-z]+/\w+\.\w+)\)`)

func TestThePageLinksToTheseFiles(t *testing.T) {
	page, err := os.ReadFile("../../docs/migration.md")
	require.NoError(t, err)
	var want, got []string
	for _, pattern := range []string{"*/before.*", "*/after.*", "*/lock.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		want = append(want, files...)
	}
	for _, m := range linked.FindAllStringSubmatch(string(page), -1) {
		got = append(got, m[1])
	}
	require.ElementsMatch(t, want, got)
}
