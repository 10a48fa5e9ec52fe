package nelicron

import (
	"context"

	"github.com/goneli/neli"
)

// term is one term of one role. The fields below ctx and l are guarded by Jobs.mu.
type term struct {
	ctx context.Context // from Lead
	l   neli.Leadership

	runs int           // number of present runs
	shut bool          // no further run may begin
	idle chan struct{} // closed when it is shut and no run is left
}

// run is one run of a job. With a Locker it is also gocron's lock, which lasts longer than the task.
type run struct {
	j     *Jobs
	term  *term
	name  string
	taken bool // its Task has begun; guarded by Jobs.mu
}

// lead is the function for Lead. Jobs may begin until ctx ends. It returns when the last run has ended,
// and Lead then hands the role over.
func (j *Jobs) lead(ctx context.Context, l neli.Leadership) error {
	t := &term{ctx: ctx, l: l, idle: make(chan struct{})}
	j.mu.Lock()
	j.terms[l.Role] = t
	j.mu.Unlock()
	<-ctx.Done()
	j.mu.Lock()
	delete(j.terms, l.Role)
	t.shut = true
	t.settle()
	j.mu.Unlock()
	<-t.idle
	return nil
}

func (t *term) settle() {
	if t.shut && t.runs == 0 {
		close(t.idle)
	}
}

// begin begins a run of a job. It counts the run before it checks the clock, so that the term waits for every
// run that passes the check.
func (j *Jobs) begin(role int, name string) (*run, error) {
	j.mu.Lock()
	t := j.terms[role]
	switch {
	case t == nil:
		j.mu.Unlock()
		return nil, neli.ErrNotLeader
	case j.runs[name] != nil:
		j.mu.Unlock()
		return nil, ErrRunning
	}
	r := &run{j: j, term: t, name: name}
	j.runs[name] = r
	t.runs++
	j.mu.Unlock()
	if t.ctx.Err() != nil {
		r.end()
		return nil, neli.ErrNotLeader
	}
	return r, nil
}

// take returns the term of the run that a task belongs to. With an Elector, where gocron has no lock, it begins
// a run. Call end when the task has ended.
func (j *Jobs) take(name string) (t *term, end func(), err error) {
	j.mu.Lock()
	if j.kind == elector {
		role := j.role
		j.mu.Unlock()
		r, err := j.begin(role, name)
		if err != nil {
			return nil, nil, err
		}
		return r.term, r.end, nil
	}
	defer j.mu.Unlock()
	r := j.runs[name]
	if r == nil || r.taken {
		return nil, nil, ErrNoLock
	}
	r.taken = true
	return r.term, func() {}, nil
}

// Unlock implements gocron.Lock.
func (r *run) Unlock(context.Context) error {
	r.end()
	return nil
}

// end ends the run, once.
func (r *run) end() {
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	if r.j.runs[r.name] != r {
		return
	}
	delete(r.j.runs, r.name)
	r.term.runs--
	r.term.settle()
}
