package cli

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/redact"
)

// common holds the flags of all verbs that talk to Kafka.
type common struct {
	bootstrap  string
	config     string
	properties []string
	group      string
	topic      string
	name       string
	timeout    time.Duration
	logLevel   string
	sentinel   string
}

func (c *common) register(f *pflag.FlagSet) {
	f.StringVar(&c.bootstrap, "bootstrap", "localhost:9092", "addresses of Kafka brokers: host:port,host:port")
	f.StringVar(&c.config, "config", "", "file of Kafka client properties, one name=value per line; put secrets here")
	f.StringArrayVarP(&c.properties, "property", "X", nil, "a Kafka client property, name=value; not for secrets: other users can see arguments")
	f.StringVar(&c.group, "group", "", "the group that contends for the lease; one for each kind of job (required)")
	f.StringVar(&c.topic, "topic", "", "topic that carries the election; groups may share one (default: the group's name and .neli)")
	f.StringVar(&c.name, "name", "", "name of this process, shown to others (default: host, process id and time)")
	f.DurationVar(&c.timeout, "timeout", 5*time.Second, "T, the length of the lease: how long a leader leads after its last beat, 100ms to 60s")
	f.StringVar(&c.logLevel, "log-level", "warn", "debug, info, warn or error; the log goes to standard error")
}

// resolve returns the configuration that the common flags give. The verb adds its own part.
func (c *common) resolve(cmd *cobra.Command) (neli.Config, error) {
	logger, err := c.logger(cmd)
	errs := []error{err}
	switch {
	case c.group != "":
	case inside():
		errs = append(errs, errors.New(`--group is missing: NELI_GROUP does not count inside neli run and neli watch --exec; use --group "$NELI_GROUP"`))
	default:
		errs = append(errs, errors.New("--group (or NELI_GROUP) is missing"))
	}
	if c.timeout == 0 { // the library would take its default; it refuses other bad values
		errs = append(errs, errors.New("--timeout 0s: must be from 100ms to 60s"))
	}
	props, err := c.kafka(cmd)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return neli.Config{}, err
	}
	if c.topic == "" {
		if !topicName.MatchString(c.group) {
			return neli.Config{}, fmt.Errorf("--group: %q must be 1 to 244 characters out of a–z, A–Z, 0–9, '.', '_' and '-', since it names the topic unless --topic does", c.group)
		}
		c.topic = c.group + ".neli"
	}
	return neli.Config{
		KafkaConfig:      props,
		LeaderGroupID:    c.group,
		LeaderTopic:      c.topic,
		Name:             c.name,
		HeartbeatTimeout: c.timeout,
		Logger:           logger,
		Provider:         provider(props),
	}, nil
}

// logger writes to standard error.
func (c *common) logger(cmd *cobra.Command) (*slog.Logger, error) {
	var level slog.Level
	if level.UnmarshalText([]byte(c.logLevel)) != nil {
		return nil, fmt.Errorf("--log-level: %q must be debug, info, warn or error", c.logLevel)
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level})), nil
}

// watchedBy adds the flag --sentinel.
func (c *common) watchedBy(f *pflag.FlagSet, usage string) {
	f.StringVar(&c.sentinel, "sentinel", "", usage)
}

// kafka collects the client's properties: those of the file, then those of -X, then the brokers of
// --bootstrap. These win over the file's only if the flag or its variable was given, and over those of an
// -X that was typed only if --bootstrap was typed, too.
func (c *common) kafka(cmd *cobra.Command) (neli.KafkaConfigMap, error) {
	props := neli.KafkaConfigMap{}
	if c.config != "" {
		if err := readProperties(c.config, props); err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
	}
	// It is another name of bootstrap.servers. With both set, the default of --bootstrap would win.
	const alias = "metadata.broker.list"
	if brokers, ok := props[alias]; ok {
		delete(props, alias)
		if _, ok := props["bootstrap.servers"]; !ok {
			props["bootstrap.servers"] = brokers
		}
	}
	named := false // -X names the brokers
	for _, p := range c.properties {
		name, value, ok := strings.Cut(p, "=")
		name = strings.TrimSpace(name)
		switch {
		case !ok || name == "":
			return nil, fmt.Errorf("-X %q: must be name=value", name)
		case redact.Secret(name) && !strings.HasSuffix(name, ".location"):
			return nil, fmt.Errorf("-X %s: arguments are public: put it into the file named by --config", name)
		}
		if name == alias {
			name = "bootstrap.servers"
		}
		props[name] = strings.TrimSpace(value)
		named = named || name == "bootstrap.servers"
	}
	flag := cmd.Flags().Lookup("bootstrap")
	given := flag.Changed
	if named && typed(cmd.Flags().Lookup("property")) {
		given = typed(flag)
	}
	if _, ok := props["bootstrap.servers"]; !ok || given {
		props["bootstrap.servers"] = c.bootstrap
	}
	return props, nil
}

// topicName is the pattern of a group's name that can be part of a topic's name.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,244}$`)

// readProperties adds the lines name=value of a file to into. # begins a comment. Errors name the
// line's number and never quote it, since it may be a secret.
func readProperties(file string, into neli.KafkaConfigMap) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(name) == "" {
			return fmt.Errorf("%s:%d: must be name=value", file, n)
		}
		into[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
