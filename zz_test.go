package neli_test

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

func TestZZ(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.join("a", func(cfg *neli.Config) {
			open(cfg)
			cfg.Logger = slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		a.Pulse(0)
		c.broker.Delay("a", time.Second)
		c.pass(silence + 200*time.Millisecond)
		a.Close()
	})
}
