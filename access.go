package neli

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// accessGuard decides when refused access is for good. Before anything has
// succeeded it is so at once: a wrong password, a missing ACL. Later it may be a
// broker that has just started and not read its users yet, so it has to last.
type accessGuard struct {
	mu      sync.Mutex
	worked  bool
	refused time.Time // since when everything was refused
	latest  time.Time // and when it was last
}

const refusedFor = 10 * time.Second

// What access was refused to, where the client tells: a member of a group needs
// the right to read both.
var (
	errTopicRefused = fmt.Errorf("topic %w", ErrAuthorization)
	errGroupRefused = fmt.Errorf("group %w", ErrAuthorization)
)

func (g *accessGuard) ok() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.worked, g.latest = true, time.Time{}
}

func (g *accessGuard) hasWorked() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.worked
}

// check returns a fatal error if err is refused access for good. doing is the
// right that it takes, as an ACL names it: operation and resource.
func (g *accessGuard) check(doing string, err error) error {
	if !errors.Is(err, ErrAuthentication) && !errors.Is(err, ErrAuthorization) {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if now.Sub(g.latest) > refusedFor {
		g.refused = now // what was refused long ago, with nothing tried since, is another story
	}
	g.latest = now
	if g.worked && now.Sub(g.refused) < refusedFor {
		return nil
	}
	return fmt.Errorf("%w: cannot %s: %w", ErrAccess, doing, err)
}
