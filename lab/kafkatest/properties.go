package kafkatest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// A listener is one address of one broker.
type listener struct {
	name       string
	protocol   string
	bind       string // where the broker listens
	advertised string // where it sends clients; "" for controllers
}

// Names of listeners. Those for proxies are PX0, PX1, …
const (
	plainListener      = "PLAINTEXT"
	controllerListener = "CONTROLLER"
	secureListener     = "SASL_SSL"
	tokenListener      = "TOKEN"
	mtlsListener       = "MTLS"
	kerberosListener   = "KERBEROS"
)

// properties returns the server.properties of one of c's brokers.
func (c *Cluster) properties(b *Broker) map[string]string {
	n := len(c.brokers)
	var voters, listeners, advertised, protocols []string
	for _, other := range c.brokers {
		voters = append(voters, fmt.Sprintf("%d@%s", other.ID, other.listener(controllerListener).bind))
	}
	for _, l := range b.listeners {
		listeners = append(listeners, l.name+"://"+l.bind)
		protocols = append(protocols, l.name+":"+l.protocol)
		if l.advertised != "" {
			advertised = append(advertised, l.name+"://"+l.advertised)
		}
	}
	props := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        strconv.Itoa(b.ID),
		"controller.quorum.voters":       strings.Join(voters, ","),
		"listeners":                      strings.Join(listeners, ","),
		"advertised.listeners":           strings.Join(advertised, ","),
		"listener.security.protocol.map": strings.Join(protocols, ","),
		"inter.broker.listener.name":     plainListener,
		"controller.listener.names":      controllerListener,
		"log.dirs":                       b.dataDir(),
		"auto.create.topics.enable":      "false",

		"default.replication.factor":               strconv.Itoa(n),
		"offsets.topic.replication.factor":         strconv.Itoa(n),
		"transaction.state.log.replication.factor": strconv.Itoa(n),
		"min.insync.replicas":                      strconv.Itoa(n/2 + 1),
		"transaction.state.log.min.isr":            strconv.Itoa(n/2 + 1),
		// The default is 50, and creating them takes most of the time of a first join.
		"offsets.topic.num.partitions":         "4",
		"transaction.state.log.num.partitions": "4",
	}
	if c.opts.ZooKeeper {
		for _, name := range []string{"process.roles", "node.id", "controller.quorum.voters", "controller.listener.names"} {
			delete(props, name)
		}
		props["broker.id"], props["zookeeper.connect"] = strconv.Itoa(b.ID), c.zookeeper
	}
	if c.authority != nil {
		maps.Copy(props, c.authority.properties())
	}
	if c.opts.Issuer != "" {
		maps.Copy(props, tokenProperties(c.opts.Issuer))
	}
	if c.opts.Kerberos != nil {
		maps.Copy(props, c.opts.Kerberos.properties())
	}
	if c.opts.BrokerProps["replica.selector.class"] != "" {
		props["broker.rack"] = "rack" + strconv.Itoa(b.ID)
	}
	maps.Copy(props, c.opts.BrokerProps)
	return props
}

// formatProperties writes props as a Java properties file, sorted by name.
func formatProperties(props map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(props)) {
		fmt.Fprintf(&text, "%s=%s\n", name, escape(props[name]))
	}
	return text.String()
}

// escape writes a value so that Java reads it: as Latin-1, and without spaces at the beginning.
func escape(value string) string {
	var text strings.Builder
	for i, r := range value {
		switch {
		case r == '\\':
			text.WriteString(`\\`)
		case r == ' ' && i == 0:
			text.WriteString(`\ `)
		case r >= ' ' && r <= unicode.MaxASCII:
			text.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&text, `\u%04x`, unit)
			}
		}
	}
	return text.String()
}
