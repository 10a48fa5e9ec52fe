package kafkatest

import (
	"testing"

	"github.com/stretchr/testify/assert"
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
}
