package kafkatest

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOptionsAreCheckedTogether(t *testing.T) {
	_, err := Options{Brokers: 2, ProxiedListeners: -1}.withDefaults()
	assert.ErrorContains(t, err, "Brokers is 2, must be 1 or 3")
	assert.ErrorContains(t, err, "ProxiedListeners is -1")

	_, err = Options{Brokers: 3, Hosts: make([]Host, 2), ProxiedListeners: 1}.withDefaults()
	assert.ErrorContains(t, err, "2 Hosts, must be as many as Brokers, 3")
	assert.ErrorContains(t, err, "ProxiedListeners is 1, must be 0 with Hosts")

	_, err = Options{Brokers: 3, Port: 65534}.withDefaults()
	assert.ErrorContains(t, err, "Port is 65534, must be from 0 to 65533")
	_, err = Options{Brokers: 3, Port: 65533}.withDefaults()
	assert.NoError(t, err)
}

// A version becomes a part of paths, which are removed if they are incomplete.
func TestVersionsAreChecked(t *testing.T) {
	for _, version := range []string{"4.3", "v4.3.1", "latest", "../../4.3.1", "4.3.1/..", "4.3.1</version>"} {
		_, err := Options{Version: version}.withDefaults()
		assert.ErrorContains(t, err, "Version is \""+version+"\", must be like "+KafkaVersion)
	}
	for _, version := range []string{"2.8.2", "4.3.1", "4.10.0"} {
		_, err := Options{Version: version}.withDefaults()
		assert.NoError(t, err)
	}
	_, err := Options{Version: "2.8.2", Secure: true}.withDefaults()
	assert.ErrorContains(t, err, "Version is 2.8.2, must be 3.5 or later with Secure")
	for _, version := range []string{"3.5.0", "3.10.0", "4.0.0"} {
		_, err := Options{Version: version, Secure: true}.withDefaults()
		assert.NoError(t, err)
	}
	_, err = Options{Version: "4.0.2", ZooKeeper: true}.withDefaults()
	assert.ErrorContains(t, err, "Version is 4.0.2, must be below 4 with ZooKeeper")
	_, err = Options{HeapMiB: 63}.withDefaults()
	assert.ErrorContains(t, err, "HeapMiB is 63, must be at least 64")
}

func TestPropertiesOnHosts(t *testing.T) {
	var hosts []Host
	for _, ip := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		hosts = append(hosts, Host{IP: netip.MustParseAddr(ip)})
	}
	opts, err := Options{Brokers: 3, Hosts: hosts}.withDefaults()
	require.NoError(t, err)
	c := &Cluster{opts: opts}
	require.NoError(t, c.layOut())
	assert.Equal(t, "10.0.0.1:9092,10.0.0.2:9092,10.0.0.3:9092", c.Bootstrap())
	props := c.properties(c.brokers[1])
	assert.Equal(t, "PLAINTEXT://10.0.0.2:9092,CONTROLLER://10.0.0.2:9093", props["listeners"])
	assert.Equal(t, "PLAINTEXT://10.0.0.2:9092", props["advertised.listeners"])
	assert.Equal(t, "1@10.0.0.1:9093,2@10.0.0.2:9093,3@10.0.0.3:9093", props["controller.quorum.voters"])
}

func TestProperties(t *testing.T) {
	opts, err := Options{
		Brokers: 3, ProxiedListeners: 2,
		BrokerProps: map[string]string{"min.insync.replicas": "1", "broker.session.timeout.ms": "3000"},
	}.withDefaults()
	require.NoError(t, err)
	c := &Cluster{opts: opts}
	require.NoError(t, c.layOut())
	defer func() {
		for _, ports := range c.routes {
			release(ports)
		}
	}()

	b := c.brokers[1]
	props := c.properties(b)
	assert.Equal(t, "2", props["node.id"])
	assert.Equal(t, "3", props["default.replication.factor"])
	assert.Equal(t, "1", props["min.insync.replicas"], "the user's value goes first")
	assert.Equal(t, "3000", props["broker.session.timeout.ms"])
	assert.Equal(t, "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PX0:PLAINTEXT,PX1:PLAINTEXT",
		props["listener.security.protocol.map"])

	routes, err := c.Routes(1)
	require.NoError(t, err)
	require.Len(t, routes, 3)
	assert.Contains(t, props["listeners"], "PX1://"+routes[1].Upstream)
	assert.Contains(t, props["advertised.listeners"], "PX1://"+routes[1].Advertised)
	assert.NotContains(t, props["advertised.listeners"], "CONTROLLER")

	_, err = c.Routes(1)
	assert.ErrorContains(t, err, "has its proxy already")
	_, err = c.Routes(2)
	assert.ErrorContains(t, err, "ProxiedListeners is 2")
}

func TestFormatProperties(t *testing.T) {
	assert.Equal(t, "a=1\nb=C:\\\\x\\u000ay\n", formatProperties(map[string]string{"b": "C:\\x\ny", "a": "1"}))
	// Java reads such a file as Latin-1, and drops spaces before a value.
	assert.Equal(t, "log.dirs=/home/j\\u00f6rg/\\ud83d\\ude00\npassword=\\  x\\u000d\n",
		formatProperties(map[string]string{"log.dirs": "/home/jörg/😀", "password": "  x\r"}))
}
