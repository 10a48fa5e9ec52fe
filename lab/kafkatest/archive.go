package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

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
	// A try whose time was too short counts. Otherwise no start with so little time would ever
	// succeed.
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
