package kafkatest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

func TestFindNamesAWrongJavaHome(t *testing.T) {
	bare(t)
	home := filepath.Join(t.TempDir(), "none")
	t.Setenv("JAVA_HOME", home)
	assert.ErrorContains(t, Find(), "java is missing: JAVA_HOME is "+home+": ")
}

// fakeJava makes JAVA_HOME name a Java 17 that runs a script in place of a class. It returns its path.
func fakeJava(t *testing.T, script string) string {
	home := t.TempDir()
	java := filepath.Join(home, "bin", "java")
	require.NoError(t, os.Mkdir(filepath.Dir(java), 0o755))
	text := "#!/bin/sh\nif [ \"$1\" = -version ]; then echo 'openjdk version \"17.0.1\"'; exit; fi\n" + script + "\n"
	require.NoError(t, os.WriteFile(java, []byte(text), 0o755))
	t.Setenv("JAVA_HOME", home)
	return java
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

// Kafka's classes come from the archive that the first start has made.
func TestClassesComeFromTheArchive(t *testing.T) {
	c := Run(t, Options{})
	require.FileExists(t, filepath.Join(c.jars, archiveName))
	out, err := c.java("-Xlog:class+load", "kafka.Kafka", "--version").Output()
	require.NoError(t, err)
	require.Regexp(t, `kafka\.Kafka source: shared objects file`, string(out))
}

// If interrupted tries counted, a first start that was interrupted or killed would make all later ones slow.
func TestAnInterruptedArchiveIsTriedAgain(t *testing.T) {
	java := fakeJava(t, "exec sleep 600")
	jars := filepath.Join(t.TempDir(), KafkaVersion)
	require.NoError(t, os.Mkdir(jars, 0o755))
	tried := filepath.Join(jars, "archived")
	ctx, cancel := context.WithCancel(t.Context())
	early := false
	time.AfterFunc(500*time.Millisecond, func() {
		early = exists(tried)
		cancel()
	})
	require.ErrorIs(t, archiveClasses(ctx, jars, java, quiet), context.Canceled)
	require.False(t, early, "a process that is killed now leaves the mark behind")
	require.NoFileExists(t, tried)

	ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, archiveClasses(ctx, jars, java, quiet), context.DeadlineExceeded)
	require.FileExists(t, tried, "a start with as little time would fail again")
}
