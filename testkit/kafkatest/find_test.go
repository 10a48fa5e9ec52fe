package kafkatest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestJavaVersion(t *testing.T) {
	for out, want := range map[string]int{
		`openjdk version "17.0.15" 2025-04-15`:            17,
		`openjdk version "25" 2025-09-16`:                 25,
		`openjdk version "22-ea" 2024-03-19`:              22,
		`java version "1.8.0_392"`:                        8,
		"Picked up JAVA_OPTS\nopenjdk version \"21.0.1\"": 21,
	} {
		got, ok := javaVersion(out)
		assert.True(t, ok, out)
		assert.Equal(t, want, got, out)
	}
	_, ok := javaVersion("no Java runtime present")
	assert.False(t, ok)
}

func TestFindNamesAllThatIsMissing(t *testing.T) {
	bare(t)
	err := Find()
	assert.ErrorContains(t, err, "java is missing")
	assert.ErrorContains(t, err, "maven (mvn) is not on the PATH")
	assert.ErrorContains(t, err, "go test ./...")
	assert.ErrorContains(t, err, "NELI_BOOTSTRAP=")

	_, err = Start(t.Context(), Options{})
	assert.ErrorContains(t, err, "java is missing")
}

// bare makes this a machine without Java, Maven, jars and settings.
func bare(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "PATH"} {
		t.Setenv(name, dir)
	}
	for _, name := range []string{"JAVA_HOME", EnvBootstrap, EnvRequire} {
		t.Setenv(name, "")
	}
}
