package kafkatest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Logs returns the last 64 KiB of each broker's log. Call it before Stop.
func (c *Cluster) Logs() string {
	var text strings.Builder
	for _, b := range c.brokers {
		fmt.Fprintf(&text, "--- broker %d (%s)\n%s", b.ID, b.Addr, b.logTail(64<<10))
	}
	return text.String()
}

// KeepLogs copies the brokers' logs and settings to dir, as broker-1.log,
// broker-1.properties and so on. Call it before Stop, which removes them.
func (c *Cluster) KeepLogs(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("kafkatest: keeping logs: %w", err)
	}
	var failed []error
	for _, b := range c.brokers {
		to := filepath.Join(dir, fmt.Sprintf("broker-%d", b.ID))
		failed = append(failed,
			copyFile(to+".log", b.logFile()),
			copyFile(to+".properties", b.propertiesFile()))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("kafkatest: keeping logs: %w", err)
	}
	return nil
}

func copyFile(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600) // settings may have secrets
}

// complaint returns the log of the broker's present run from its first error on, or its end if there is no
// error.
func (b *Broker) complaint() string {
	const limit = 4 << 10
	content, err := os.ReadFile(b.logFile())
	if err != nil {
		return err.Error()
	}
	b.mu.Lock()
	run := content[min(b.logged, len(content)):]
	b.mu.Unlock()
	first := bytes.Index(run, []byte(" ERROR "))
	if first < 0 {
		return string(run[max(0, len(run)-limit):])
	}
	line := bytes.LastIndexByte(run[:first], '\n') + 1
	return string(run[line:min(len(run), line+limit)])
}

// logTail returns the last limit bytes of the broker's log.
func (b *Broker) logTail(limit int) string {
	content, err := os.ReadFile(b.logFile())
	if err != nil {
		return err.Error() + "\n"
	}
	return string(content[max(0, len(content)-limit):])
}
