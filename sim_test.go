package neli_test

import (
	"testing"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/sim"
)

// simulated lets internal/sim make processes with clocks of its own.
var simulated = sim.Options{New: func(m sim.Machine, cfg neli.Config, barrier neli.Barrier) (*neli.Neli, error) {
	return neli.NewOn(neli.Machine{Clock: m.Clock, Random: m.Random, NewID: func() string { return m.ID }}, cfg, barrier)
}}

// TestSimulation runs whole processes under an adversary: see internal/sim.
func TestSimulation(t *testing.T) { sim.Suite(t, simSeeds, simulated) }

// TestSmallSimulation does the same on a majority of small logs: see internal/sim.
func TestSmallSimulation(t *testing.T) { sim.SuiteSmall(t, smallSeeds, simulated) }
