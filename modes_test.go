package neli

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The guide's table says which fields New refuses in which mode. New refuses these and no others.
func TestNewAgreesWithTheTableOfModes(t *testing.T) {
	guide, err := os.ReadFile("docs/guide.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(guide), "### What works in which mode\n")
	require.True(t, found)
	table, _, found = strings.Cut(table, "\n\n| call |")
	require.True(t, found)
	modes := []Config{{}, {Nomination: NominationAssigned}, {Mode: NonExclusive}, {Observer: true}}
	set := map[string]func(*Config){
		"Observer":         func(c *Config) { c.Observer = true },
		"Advertise":        func(c *Config) { c.Advertise = "a:1" },
		"Zone":             func(c *Config) { c.Zone = "a" },
		"Nomination":       func(c *Config) { c.Nomination = NominationAssigned },
		"Priority":         func(c *Config) { c.Priority = 1 },
		"MaxRoles":         func(c *Config) { c.MaxRoles = 1 },
		"Preference":       func(c *Config) { c.Preference = func(Member, int) int { return 0 } },
		"Weight":           func(c *Config) { c.Weight = func(int) int { return 1 } },
		"Prepare":          func(c *Config) { c.Prepare = func(context.Context, int) error { return nil } },
		"DisableRebalance": func(c *Config) { c.DisableRebalance = true },
		"Healthy":          func(c *Config) { c.Healthy = func() error { return nil } },
		"DrainTimeout":     func(c *Config) { c.DrainTimeout = time.Second },
		"MaxPulseInterval": func(c *Config) { c.MaxPulseInterval = time.Second },
		"MaxClockDrift":    func(c *Config) { c.MaxClockDrift = 0.001 },
		"Logs":             func(c *Config) { c.Logs = 3 },
		"GroupsOnTopic":    func(c *Config) { c.GroupsOnTopic = 2 },
		"Requests":         func(c *Config) { c.Requests = func(Request) error { return nil } },
		"Sentinel":         func(c *Config) { c.Sentinel = "/s" },
		"TokenBase":        func(c *Config) { c.TokenBase = 1 },
	}
	rows := 0
	for line := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != len(modes)+3 || !strings.HasPrefix(cells[1], " `") || set[strings.Trim(cells[1], " `")] == nil {
			continue
		}
		rows++
		for i, mode := range modes {
			mode.LeaderGroupID = "g"
			set[strings.Trim(cells[1], " `")](&mode)
			_, err := mode.resolve()
			require.Equal(t, strings.HasPrefix(cells[i+2], " refused"), err != nil, "%s, column %d: %v", line, i+1, err)
		}
	}
	require.Len(t, set, rows, "each field has a row")
}
