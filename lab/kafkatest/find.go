package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// KafkaVersion is the version of Apache Kafka that runs unless Options name another one.
const KafkaVersion = "4.4.0"

// minJava is the oldest Java that Kafka's broker runs on.
const minJava = 17

const howToRun = "The integration suite runs a real Apache Kafka " + KafkaVersion + `:
install Java 17 or newer and, for the first run, Maven (both on the PATH, or
JAVA_HOME set), then run "go test ./..." in the directory lab/integration.
Or set NELI_BOOTSTRAP=host:port to use a Kafka that runs already; tests that stop
or cut off brokers are skipped then.`

// Find returns nil if a Kafka can run here: if there is Java, and either Maven or the jars of an earlier
// download. Its error says what is missing, and how to run the suite. Find only starts `java -version`; it
// downloads nothing.
func Find() error { return find(KafkaVersion) }

// find is Find for a version.
func find(version string) error {
	var missing []error
	if _, err := findJava(); err != nil {
		missing = append(missing, err)
	}
	if dir, err := jarDir(version); err != nil {
		missing = append(missing, err)
	} else if !filled(dir) {
		if _, err := exec.LookPath("mvn"); err != nil {
			missing = append(missing, fmt.Errorf("maven (mvn) is not on the PATH and %s has no jars yet", dir))
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("kafkatest: %w\n%s", errors.Join(missing...), howToRun)
}

// findJava returns the path of a Java that is new enough. JAVA_HOME comes before the PATH, as in Kafka's own scripts.
func findJava() (string, error) {
	java, home := "java", os.Getenv("JAVA_HOME")
	if home != "" {
		java = filepath.Join(home, "bin", "java")
	}
	path, err := exec.LookPath(java)
	if err != nil {
		if home != "" { // there may be a Java on the PATH
			err = fmt.Errorf("JAVA_HOME is %s: %w", home, err)
		}
		return "", fmt.Errorf("java is missing: %w", err)
	}
	// Without Java, macOS has a stub at this path, which fails.
	out, err := exec.Command(path, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s -version: %w: %s", path, err, out)
	}
	version, ok := javaVersion(string(out))
	if !ok {
		return "", fmt.Errorf("%s -version does not tell its version: %s", path, out)
	}
	if version < minJava {
		return "", fmt.Errorf("%s is Java %d, at least %d is needed", path, version, minJava)
	}
	return path, nil
}

var javaVersionRE = regexp.MustCompile(`version "(?:1\.)?(\d+)`)

// javaVersion reads the major version from the output of java -version, which
// calls Java 8 "1.8.0_392" and Java 17 "17.0.15" or "17-ea".
func javaVersion(out string) (major int, ok bool) {
	m := javaVersionRE.FindStringSubmatch(out)
	if m == nil {
		return 0, false
	}
	major, err := strconv.Atoi(m[1])
	return major, err == nil
}

// archiveName is the file, next to the jars, with the classes that a broker loads when it starts, in the form that
// the JVM uses in memory (class-data sharing). A JVM that is given it takes less than two thirds of the time to
// start. It ignores an archive of another Java.
const archiveName = "classes.jsa"

// archiveClasses starts a broker once, whose JVM makes the archive when it ends. That is tried once for each directory
// of jars, since brokers start without an archive, too.
func archiveClasses(ctx context.Context, jars, javaPath string, log *slog.Logger) error {
	tried := filepath.Join(jars, "archived")
	if exists(tried) {
		return nil
	}
	unlock, err := lock(ctx, jars+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if exists(tried) {
		return nil // by another process
	}
	log.Info("starting Kafka a first time to archive its classes, once: later starts take two thirds of the time")
	began := time.Now()
	err = makeArchive(ctx, jars, javaPath)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return err // an interrupted try does not count, and neither does one whose process is killed
	}
	// A try that ran out of time counts. Otherwise no start with such a short deadline would ever succeed.
	if err := errors.Join(err, os.WriteFile(tried, nil, 0o644)); err != nil {
		return err
	}
	log.Info("archived Kafka's classes", "took", time.Since(began).Round(time.Millisecond))
	return nil
}

func makeArchive(ctx context.Context, jars, javaPath string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	opts, err := Options{}.withDefaults()
	if err != nil {
		return err
	}
	c := &Cluster{opts: opts, jars: jars, javaPath: javaPath, archiveTo: filepath.Join(jars, archiveName+".new")}
	defer c.Stop()
	if err := c.launch(ctx); err != nil {
		return err
	}
	if err := c.brokers[0].Terminate(ctx); err != nil {
		return err
	}
	return os.Rename(c.archiveTo, filepath.Join(jars, archiveName))
}

// sharing returns the JVM's option that makes the archive or, if there is one, uses it.
func (c *Cluster) sharing() []string {
	archive := filepath.Join(c.jars, archiveName)
	switch {
	case c.archiveTo != "":
		return []string{fmt.Sprint("-XX:ArchiveClassesAtExit=", c.archiveTo)}
	case exists(archive):
		return []string{fmt.Sprint("-XX:SharedArchiveFile=", archive)}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
