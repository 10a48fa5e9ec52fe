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
	// ErrBoth: Locker was called after Elector or the reverse, or Elector for a second role.
	ErrBoth = errors.New("nelicron: gocron ignores the Locker of a scheduler that has an Elector: take one of them")

	// ErrRunning: the previous run of the job is still running on this instance.
	ErrRunning = errors.New("nelicron: the job's previous run is still running")

	// ErrNoLock: gocron started a Task without locking a job of its name. Either the job has another name
	// (gocron.WithName), or the scheduler does not have this Jobs's Locker, or it also has an Elector, so
	// that gocron ignores the Locker.
	ErrNoLock = errors.New("nelicron: the task's job is not locked: give the job the task's name, and the scheduler this Locker and no Elector")
)

// Jobs ties schedulers of this process to a Neli. Its methods are safe for concurrent use.
type Jobs struct {
	n     *neli.Neli
	roles int

	mu    sync.Mutex
	kind  kind
	role  int             // the Elector's
	terms map[int]*term   // by role: the terms in which jobs may begin
	runs  map[string]*run // by job name
}

// kind says whether a Jobs has provided a Locker or an Elector.
type kind int

const (
	none kind = iota
	locker
	elector
)

// New returns a Jobs for n, which [Jobs.Run] then drives. It uses the present number of n's roles: do not call
// n.SetRoles afterwards. It fails if n is nil or in non-exclusive mode, where two processes may lead at the
// same time.
func New(n *neli.Neli) (*Jobs, error) {
	if n == nil {
		return nil, errors.New("nelicron: New: n is nil")
	}
	if n.Config().Mode != neli.Exclusive {
		return nil, errors.New("nelicron: New: needs Mode Exclusive: in the other one two processes lead at once for a while")
	}
	return &Jobs{n: n, roles: n.Stats().Roles, terms: map[int]*term{}, runs: map[string]*run{}}, nil
}

// Locker returns the argument for gocron.WithDistributedLocker; each call returns the same one. Its Lock
// succeeds on the instance that leads the role neli.Slot(key, R), unless the role is being handed over.
// Otherwise its error wraps neli.ErrNotLeader or ErrRunning. Lock does not use the network. Until Unlock a
// hand-over of the role waits, at most for Config.DrainTimeout. After Elector, Locker returns ErrBoth.
func (j *Jobs) Locker() (gocron.Locker, error) {
	if err := j.be(locker, 0); err != nil {
		return nil, err
	}
	return gate{j}, nil
}

// Elector returns the argument for gocron.WithDistributedElector. Its IsLeader returns nil on the instance that
// leads the role, unless the role is being handed over. Otherwise its error wraps neli.ErrNotLeader. IsLeader
// does not use the network. A hand-over waits only for tasks of [Jobs.Task]. After Locker, or for another role
// than before, Elector returns ErrBoth.
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

// Task returns the task of the job that gocron.WithName calls name. fn is called once for each run, like the
// function of neli.Lead. When ctx ends, context.Cause says why. With neli.ErrFenced another instance may
// already run the job, so fn must stop at once. With any other cause the role must be handed over: the
// hand-over waits for fn, and l.Valid stays true meanwhile. ctx does not end when the scheduler is shut down:
// end the context of [Jobs.Run] first.
//
// fn is not called, and the run fails, if ctx ended after gocron was told to start the job (with the cause, or
// neli.ErrNotLeader), if the previous run is still running (ErrRunning), or without the Locker's lock (ErrNoLock).
func (j *Jobs) Task(name string, fn func(ctx context.Context, l neli.Leadership) error) gocron.Task {
	return gocron.NewTask(func() error {
		t, end, err := j.take(name)
		if err != nil {
			return fmt.Errorf("nelicron: job %q: %w", name, err)
		}
		defer end()
		// The process may have been suspended since gocron was told to start the job.
		if t.ctx.Err() != nil {
			return fmt.Errorf("nelicron: job %q: %w", name, context.Cause(t.ctx))
		}
		return fn(t.ctx, t.l)
	})
}

// Run calls n.Lead until ctx is done, and returns its result. Jobs begin only while Run does, and when it returns
// all that a handover waits for have ended. Only one Run, Lead or Background of n works at a time.
func (j *Jobs) Run(ctx context.Context) error { return j.n.Lead(ctx, j.lead) }

// gate is the Locker or Elector that gocron uses.
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
