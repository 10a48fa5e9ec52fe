package kafkatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// pom returns a Maven project with the dependencies of a broker of that version. Versions are pinned, so that
// all runs test against the same Kafka.
func pom(version string) string {
	return `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>neli</groupId>
  <artifactId>kafkatest</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>` + version + `</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>1.7.36</version>
    </dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin>
        <groupId>org.apache.maven.plugins</groupId>
        <artifactId>maven-dependency-plugin</artifactId>
        <version>3.8.1</version>
      </plugin>
    </plugins>
  </build>
</project>
`
}

// marker is a file that marks a directory of jars as complete.
const marker = "complete"

func jarDir(version string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory for the jars: %w", err)
	}
	return filepath.Join(cache, "neli-kafka", version), nil
}

func filled(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, marker))
	return err == nil
}

// jars returns the directory with Kafka's jars. If it is not filled yet, Maven fills it first. If several test
// processes run at the same time, one downloads and the others wait.
func jars(ctx context.Context, version string, log *slog.Logger) (string, error) {
	dir, err := jarDir(version)
	if err != nil {
		return "", err
	}
	fetch := func(ctx context.Context, to string) error { return download(ctx, version, to, log) }
	return dir, fill(ctx, dir, fetch, log)
}

// fill calls fetch for a new directory, and moves that to dir. It does nothing if dir is already complete.
func fill(ctx context.Context, dir string, fetch func(context.Context, string) error, log *slog.Logger) error {
	if filled(dir) {
		return nil
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if filled(dir) {
		return nil // another process was faster
	}

	log.Info("downloading Kafka by Maven, once: 340 files, 65 MiB, a minute or two", "to", dir)
	began := time.Now()
	removeUnfinished(dir)
	// The directory is next to its destination, so that the rename stays within one file system.
	fresh, err := os.MkdirTemp(parent, filepath.Base(dir)+unfinished)
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	if err := fetch(ctx, fresh); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(fresh, marker), nil, 0o644); err != nil {
		return err
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // an incomplete one
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return err
	}
	log.Info("downloaded Kafka", "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// unfinished is in the name of a download's directory, between its destination's name and a random number.
const unfinished = ".download-"

// removeUnfinished removes what killed processes have left of their downloads for dir. The caller holds the lock.
func removeUnfinished(dir string) {
	found, _ := os.ReadDir(filepath.Dir(dir))
	for _, entry := range found {
		if strings.HasPrefix(entry.Name(), filepath.Base(dir)+unfinished) {
			_ = os.RemoveAll(filepath.Join(filepath.Dir(dir), entry.Name()))
		}
	}
}

// download makes Maven copy the jars of a version to dir.
func download(ctx context.Context, version, dir string, log *slog.Logger) error {
	work, err := os.MkdirTemp("", "neli-kafka-pom-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	file := filepath.Join(work, "pom.xml")
	if err := os.WriteFile(file, []byte(pom(version)), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "mvn", "-B", "-f", file,
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+dir)
	cmd.Dir = work
	// When Maven has ended, a child of it may still hold its output pipe.
	cmd.WaitDelay = 5 * time.Second
	p := &progress{log: log, told: time.Now()}
	cmd.Stdout, cmd.Stderr = p, p
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("downloading Kafka's jars: mvn: %w\n%s", errors.Join(err, ctx.Err()), p.said)
	}
	found, err := filepath.Glob(filepath.Join(dir, "kafka_2.13-"+version+".jar"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("downloading Kafka's jars: mvn succeeded, but %s has no kafka_2.13-%s.jar", dir, version)
	}
	return nil
}

// progress reads Maven's output, and logs every few seconds how many files have arrived.
type progress struct {
	log   *slog.Logger
	told  time.Time
	files int
	said  []byte // other lines
	begun []byte // a line without its end
}

func (p *progress) Write(b []byte) (int, error) {
	p.begun = append(p.begun, b...)
	for {
		line, rest, ended := bytes.Cut(p.begun, []byte("\n"))
		if !ended {
			return len(b), nil
		}
		switch {
		case bytes.Contains(line, []byte("Downloaded from")):
			p.files++
		case !bytes.Contains(line, []byte("Downloading from")):
			p.said = append(append(p.said, line...), '\n')
		}
		p.begun = rest
		if time.Since(p.told) >= 5*time.Second {
			p.told = time.Now()
			p.log.Info("downloading Kafka", "files", p.files)
		}
	}
}

// lock takes the exclusive lock of a file, which the kernel releases when the process ends. It tries repeatedly,
// since a blocking flock cannot end with a context.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = file.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = file.Close()
			return nil, fmt.Errorf("waiting for another process that downloads Kafka: %w", ctx.Err())
		}
	}
}
