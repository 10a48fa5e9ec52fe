package nelicron

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/goneli/neli"
)

var (
	// ErrBoth: a Locker was asked for after an Elector, or the reverse.
	ErrBoth = errors.New("nelicron: gocron ignores the Locker of a scheduler that has an Elector: take one of them")

	// ErrRunning: the previous run of the job is still at work on this instance.
	ErrRunning = errors.New("nelicron: the job's previous run is still at work")

	// ErrNoLock: a Task runs although gocron has not locked a job of its name. Either the job
	// has another name (gocron.WithName), or the scheduler has no Locker of this Jobs, or
	// it has an Elector too, which makes gocron ignore Lockers.
	ErrNoLock = errors.New("nelicron: the task's job is not locked: give the job the task's name, and the scheduler this Locker and no Elector")
)

// Jobs ties schedulers of this process to a Neli. Its methods may be called from any
// goroutine.
type Jobs struct {
	n     *neli.Neli
	roles int

	mu    sync.Mutex
	kind  kind
	role  int             // the Elector's
	terms map[int]*term   // by role: those in which jobs may begin
	runs  map[string]*run // by job
}

// kind is what a Jobs has given out.
type kind int

const (
	none kind = iota
	locker
	elector
)

// New ties jobs to n, which [Jobs.Run] then drives. The number of roles is that which n has
// now, for good: n.SetRoles must not be called afterwards. It is an error if n is in
// non-exclusive mode, where two processes lead at once for a while.
func New(n *neli.Neli) (*Jobs, error) {
	if n == nil {
		return nil, errors.New("nelicron: New: n is nil")
	}
	if n.Mode() != neli.Exclusive {
		return nil, errors.New("nelicron: New: needs Mode Exclusive: in the other one two processes lead at once for a while")
	}
	return &Jobs{n: n, roles: n.Stats().Roles, terms: map[int]*term{}, runs: map[string]*run{}}, nil
}

// Locker returns what gocron.WithDistributedLocker takes; each call returns the same. Its Lock
// succeeds on the instance that leads the role neli.Slot(key, R), unless the role is being
// handed over; otherwise the error wraps neli.ErrNotLeader, or is ErrRunning. It asks no network. Until Unlock a
// hand-over of the role waits, for Config.DrainTimeout at most. After Elector it is ErrBoth.
func (j *Jobs) Locker() (gocron.Locker, error) {
	if err := j.be(locker, 0); err != nil {
		return nil, err
	}
	return gate{j}, nil
}

// Elector returns what gocron.WithDistributedElector takes. Its IsLeader is nil on the
// instance that leads the role, unless it is being handed over; otherwise the error wraps
// neli.ErrNotLeader. It asks no network. A hand-over waits for tasks of [Jobs.Task] only.
// After Locker, or for another role than before, it is ErrBoth.
func (j *Jobs) Elector(role int) (gocron.Elector, error) {
	if role < 0 || role >= j.roles {
		return nil, fmt.Errorf("nelicron: Elector: role %d: must be between 0 and %d", role, j.roles-1)
	}
	if err := j.be(elector, role); err != nil {
		return nil, err
	}
	return gate{j}, nil
}

func (j *Jobs) be(k kind, role int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.kind != none && (j.kind != k || j.role != role) {
		return ErrBoth
	}
	j.kind, j.role = k, role
	return nil
}

// Task makes the task of the job that is called name by gocron.WithName; fn is called as the
// function of neli.Lead is, once for each run. When ctx ends, context.Cause tells how: with
// neli.ErrFenced another instance may run the job already, so stop at once; with anything
// else the role is to be handed over, which waits for fn. l.Valid stays true meanwhile. The
// context does not end when the scheduler is shut down: end that of [Jobs.Run] first.
//
// fn is not called when the lease was lost since the job was let through (the cause, for
// gocron an error of the job), when the previous run is at work (ErrRunning), or without
// the Locker's consent (ErrNoLock).
func (j *Jobs) Task(name string, fn func(ctx context.Context, l neli.Leadership) error) gocron.Task {
	return gocron.NewTask(func() error {
		t, end, err := j.take(name)
		if err != nil {
			return fmt.Errorf("nelicron: job %q: %w", name, err)
		}
		defer end()
		// The process may have been suspended since gocron was told to go ahead.
		if t.ctx.Err() != nil {
			return fmt.Errorf("nelicron: job %q: %w", name, context.Cause(t.ctx))
		}
		return fn(t.ctx, t.l)
	})
}

// Run leads with n.Lead until ctx is done, and returns what that returns. Jobs run only
// while it does, and when it returns all that was let through has ended. Only one Run, Lead or
// Background of n is at work at a time.
func (j *Jobs) Run(ctx context.Context) error { return j.n.Lead(ctx, j.lead) }

// gate is a Jobs as gocron knows it.
type gate struct{ j *Jobs }

// Lock implements gocron.Locker.
func (g gate) Lock(_ context.Context, key string) (gocron.Lock, error) {
	r, err := g.j.begin(neli.Slot(key, g.j.roles), key)
	if err != nil {
		return nil, fmt.Errorf("nelicron: job %q: %w", key, err)
	}
	return r, nil
}

// IsLeader implements gocron.Elector.
func (g gate) IsLeader(context.Context) error {
	g.j.mu.Lock()
	t := g.j.terms[g.j.role]
	g.j.mu.Unlock()
	if t == nil || t.ctx.Err() != nil {
		return fmt.Errorf("nelicron: %w", neli.ErrNotLeader)
	}
	return nil
}
