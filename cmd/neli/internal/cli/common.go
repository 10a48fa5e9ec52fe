package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
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

	where map[string]string // where each Kafka property was given: client.properties:3, -X, --bootstrap
}

func (c *common) register(f *pflag.FlagSet) {
	f.StringVar(&c.bootstrap, "bootstrap", "localhost:9092", "addresses of Kafka brokers: host:port,host:port")
	f.StringVar(&c.config, "config", "", "file of Kafka client properties, one name=value per line, in UTF-8; put secrets here")
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
	case nested():
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

// logger returns a logger that writes to standard error.
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
// --bootstrap. --bootstrap wins over the file's brokers only if the flag or its variable was given. It wins
// over the brokers of a typed -X only if it was typed, too.
func (c *common) kafka(cmd *cobra.Command) (neli.KafkaConfigMap, error) {
	var all []given
	if c.config != "" {
		var err error
		if all, err = readProperties(c.config); err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
	}
	// The alias is read as bootstrap.servers. Under its own name, the default of --bootstrap would win over it.
	const alias, brokers = "metadata.broker.list", "bootstrap.servers"
	if slices.ContainsFunc(all, func(p given) bool { return p.name == brokers }) {
		all = slices.DeleteFunc(all, func(p given) bool { return p.name == alias })
	}
	arguments, err := c.arguments(cmd)
	if err != nil {
		return nil, err
	}
	props := neli.KafkaConfigMap{}
	c.where = map[string]string{}
	named := false // -X names the brokers
	for i, p := range append(all, arguments...) {
		if p.name == alias {
			p.name = brokers
		}
		props[p.name], c.where[p.name] = p.value, p.where
		named = named || p.name == brokers && i >= len(all)
	}
	flag := cmd.Flags().Lookup("bootstrap")
	set := flag.Changed
	if named && typed(cmd.Flags().Lookup("property")) {
		set = typed(flag)
	}
	if _, ok := props[brokers]; !ok || set {
		props[brokers], c.where[brokers] = c.bootstrap, "--bootstrap"
	}
	return props, nil
}

// arguments returns the properties of -X.
func (c *common) arguments(cmd *cobra.Command) (props []given, err error) {
	where := "-X"
	if !typed(cmd.Flags().Lookup("property")) {
		where = variable("property")
	}
	var errs []error
	for _, p := range c.properties {
		name, value, ok := strings.Cut(p, "=")
		name = strings.TrimSpace(name)
		switch {
		case !ok || name == "":
			errs = append(errs, fmt.Errorf("-X %q: must be name=value", name))
		case redact.Secret(name) && !strings.HasSuffix(name, ".location") && !slices.Contains(publicPEM, name):
			errs = append(errs, fmt.Errorf("-X %s: arguments are public: put it into the file named by --config", name))
		default:
			props = append(props, given{name, strings.TrimSpace(value), where})
		}
	}
	return props, errors.Join(errs...)
}

// publicPEM are certificates, which are no secrets although private keys have names like theirs.
var publicPEM = []string{"ssl.ca.pem", "ssl.certificate.pem", "https.ca.pem"}

// topicName is the pattern of a group's name that can be part of a topic's name.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,244}$`)
