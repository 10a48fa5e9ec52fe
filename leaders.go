package neli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/goneli/neli/internal/elector"
)

const (
	// namedRoles is the largest R for which the log names the leader of each role.
	namedRoles = 8
	// leadersEvery is the least time between two reports of the leaders, and leadersLook between
	// two checks for changes.
	leadersEvery = 10 * time.Second
	leadersLook  = time.Second
)

// sayLeaders starts a goroutine that logs which other processes lead, because people look for the
// leader in a follower's log. stop ends the goroutine and waits for it.
func (n *Neli) sayLeaders() (stop func()) {
	if n.core.elector == nil || !n.set.logger.Enabled(context.Background(), slog.LevelInfo) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		changed, done := n.core.elector.Notify()
		defer done()
		told := map[int]string{} // by role: the process last reported
		summary := ""
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			said, wait := false, leadersLook
			if roles := int(n.roles.Load()); roles <= namedRoles {
				said = n.nameLeaders(roles, told)
			} else {
				said = n.countLeaders(&summary)
			}
			if said {
				wait = leadersEvery
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
		}
	})
	return func() { cancel(); work.Wait() }
}

// nameLeaders logs the leader of each role whose leader has changed since it was last reported.
func (n *Neli) nameLeaders(roles int, told map[int]string) (said bool) {
	for role := range roles {
		g, _, held := n.core.elector.Holder(role)
		if !held || told[role] == g.Session.Process {
			continue
		}
		told[role] = g.Session.Process
		if g.Session.Process == n.set.process {
			continue // this process's own events report its roles
		}
		said = true
		args := []any{"role", role, "leader", shown(g.Name, g.Session.Process)}
		if !n.set.majority {
			args = append(args, "token", n.set.TokenBase+g.Token)
		}
		n.set.logger.Info("another process leads", args...)
	}
	return said
}

// countLeaders logs how many roles other processes lead, if that has changed.
func (n *Neli) countLeaders(told *string) bool {
	var largest []string
	processes, roles := 0, 0
	for _, s := range n.core.elector.Shares() {
		if s.Process == n.set.process {
			continue
		}
		processes, roles = processes+1, roles+s.Roles
		if len(largest) < maxNamed {
			largest = append(largest, fmt.Sprintf("%s: %d", shown(s.Name, s.Process), s.Roles))
		}
	}
	summary := fmt.Sprint(processes, roles, largest)
	if processes == 0 || summary == *told {
		return false
	}
	*told = summary
	n.set.logger.Info("other processes lead", "leaders", processes, "count", roles, "largest", strings.Join(largest, ", "))
	return true
}

// shown returns a process's name, or else its id, with characters that could falsify a log removed.
func shown(name, process string) string { return elector.Harmless(or(name, process)) }
