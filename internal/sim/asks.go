package sim

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goneli/neli"
)

// Requests in the simulator. Members and the witness ask holders to hand over roles and to step
// down, strangers forge requests, and the holders' applications accept or refuse them.

// asking is what a seed decides about requests. It draws from a source of its own. Most seeds
// have no requests, and run as they would without this code.
type asking struct {
	rnd   *rand.Rand // used only by the scheduling goroutine
	on    bool
	quiet bool // faults are over, and all requests are refused; guarded by the world's lock
}

func drawAsking(seed uint64, p plan) asking {
	rnd := rand.New(rand.NewPCG(seed, 37))
	return asking{rnd: rnd, on: rnd.IntN(3) == 0 && p.profile == stormy}
}

// policy is how an application answers requests.
type policy int

const (
	policyNone policy = iota // it is not asked: the library refuses all
	policyRefuse
	policyAccept
	policyWhim
	policies
)

// heed is the state of a process with respect to requests.
type heed struct {
	policy policy
	calls  atomic.Int64
	asked  atomic.Bool // the application is being asked
	moves  atomic.Bool // its application, or its operator, has allowed a hand-over
}

var errUnwilling = errors.New("no: \x1b[2J\u202e" + strings.Repeat("€", 300))

// heeding completes a member's configuration.
func (w *world) heeding(p *proc, cfg *neli.Config) {
	if !w.asking.on {
		return
	}
	p.heed.policy = policy(w.asking.rnd.IntN(int(policies)))
	if p.heed.policy != policyNone {
		cfg.Requests = p.decides
	}
}

// decides is the application's answer to a request. It is suspended with its process.
func (p *proc) decides(r neli.Request) error {
	w := p.w
	if p.heed.asked.Swap(true) {
		w.violated("%s: the application is asked about two requests at once", p.id)
	}
	defer p.heed.asked.Store(false)
	if stopped := p.app.stoppedUntil(); stopped != nil {
		<-stopped
	}
	if r.StepDown == (r.To != "") || r.RequesterID == "" {
		w.violated("%s is given an empty request: %+v", p.id, r)
	}
	whim := p.heed.calls.Add(1)%2 == 0
	w.mu.Lock()
	refuse := w.asking.quiet || w.patient && !r.StepDown || p.heed.policy == policyRefuse || p.heed.policy == policyWhim && whim
	if end := time.Now().Add(simDrain + 2*p.awayFor()); !refuse && end.After(w.quiet) {
		w.quiet = end
	}
	w.mu.Unlock()
	if refuse {
		w.opts.Seen.Count("request: refused by the application")
		return errUnwilling
	}
	p.heed.moves.Store(true)
	w.opts.Seen.Count("request: accepted")
	return nil
}

// lets asserts that a process gives up a role for others only if its application or its operator has allowed it.
func (p *proc) lets(why neli.Reason) {
	if (why == neli.ReasonTransferred || why == neli.ReasonSteppedDown) && !p.heed.moves.Load() {
		p.w.violated("%s gives something up though nobody let it: %v", p.id, why)
	}
}

// beg lets some process ask for something now and then.
func (w *world) beg() {
	rnd := w.asking.rnd
	if !w.asking.on || rnd.IntN(3) == 0 {
		return
	}
	role := oneOf(rnd, w.looked...)
	p := w.leaderOf(role)
	if p == nil || p.leaving.Load() {
		return
	}
	others := slices.DeleteFunc(w.living(), func(q *proc) bool { return q == p })
	if len(others) == 0 || rnd.IntN(4) == 0 {
		w.forge(p, role)
		return
	}
	r := neli.Request{Role: role, StepDown: true}
	q := oneOf(rnd, others...)
	if rnd.IntN(2) == 0 {
		r = neli.Request{Role: role, To: q.self}
	}
	by, name := w.witness.Neli, "witness"
	if a := oneOf(rnd, others...); rnd.IntN(2) == 0 && role < a.r() {
		by, name = a.Neli, a.id
	}
	token, _ := p.Token(role)
	w.ending.Go(func() { w.asks(by, name, r, transferred{p, q, role, token}) })
}

// askFor is how long the sender of a request waits for its end.
const askFor = 40 * time.Second

// asks sends a request, and checks the answers to it.
func (w *world) asks(by *neli.Neli, name string, r neli.Request, m transferred) error {
	ctx, stop := context.WithTimeout(context.Background(), askFor)
	defer stop()
	err := by.Ask(ctx, r)
	w.say(name, "asks %s of role %d, to %q, step down %v: %v", m.from.id, r.Role, r.To, r.StepDown, err)
	seen := w.opts.Seen
	switch {
	case err == nil && r.StepDown:
		seen.Count("asked: stepped down")
	case err == nil:
		seen.Count("asked: transferred")
		w.mu.Lock()
		w.moves = append(w.moves, m)
		w.mu.Unlock()
	case errors.Is(err, neli.ErrRefused):
		seen.Count("asked: refused")
		if strings.ContainsAny(err.Error(), "\x1b\u202e") {
			w.violated("%s is told what moves its cursor: %v", name, err)
		}
	case errors.Is(err, neli.ErrLeadsAlready):
		seen.Count("asked: of the leader itself")
	case errors.Is(err, neli.ErrNotDone), errors.Is(err, neli.ErrNoAnswer), errors.Is(err, neli.ErrVacant):
		seen.Count("asked: in vain")
	case errors.Is(err, neli.ErrClosed), errors.Is(err, neli.ErrTopicChanged),
		ctx.Err() != nil, by.State() != neli.StateLive, strings.Contains(err.Error(), "holds the role itself"):
	default:
		w.violated("%s: Ask returned %v", name, err)
	}
	return err
}

// forge puts a stranger's request with arbitrary contents into the log, perhaps late or twice.
func (w *world) forge(p *proc, role int) {
	rnd, partition := w.asking.rnd, role%w.partitions
	w.mu.Lock()
	read := int64(len(w.truths[partition].entries)) - 1
	log, broken := w.logID, w.broken
	w.mu.Unlock()
	if broken { // the offsets belong to other records now
		return
	}
	if rnd.IntN(3) == 0 {
		read = rnd.Int64N(read+2) - 1 // the request may be old
	}
	const rubbish = "\x1b[2J\u202e<script>"
	request := oneOf[any](rnd,
		map[string]any{"id": 1 + rnd.IntN(3), "role": role, "verb": "step_down"},
		map[string]any{"id": 1 + rnd.IntN(3), "role": role, "verb": "transfer", "to": oneOf(rnd, w.living()...).self},
		map[string]any{"id": 1 + rnd.IntN(3), "role": role, "verb": "transfer", "to": rubbish},
		map[string]any{"id": 1 + rnd.IntN(3), "role": role + rnd.IntN(1000), "verb": rubbish},
		map[string]any{"id": -1, "role": "x"}, 7, rubbish, nil)
	value, err := json.Marshal(map[string]any{"neli": 1, "group": simGroup, "log": log, "kind": oneOf(rnd, "ping", "ping", "ping", "pong", "hello"),
		"process": oneOf(rnd, "stranger", rubbish), "session": 1, "name": rubbish, "read": read, "seq": 1 + rnd.IntN(9), "to": p.self,
		"request": request, "answer": map[string]any{"id": 1 + rnd.IntN(9), "stage": "done"}})
	if err != nil {
		w.Fatal(err)
	}
	w.opts.Seen.Count("request: forged")
	w.say("", "somebody writes %s", value)
	for range 1 + rnd.IntN(3) {
		if o, err := w.broker.Inject(simTopic, partition, value); err == nil {
			w.learn(partition, o, value)
		}
	}
}

// hears lets applications accept requests, or makes them refuse all. What they accept causes more
// moves, which must stop before everything heals.
func (w *world) hears(yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking.quiet = !yes
}

// heeded asserts that, without faults, a request soon ends: as requested, or with a refusal.
func (w *world) heeded() {
	if !w.asking.on || w.broken || w.newer || !w.sameR || w.patient || w.nomination != neli.NominationOpen || w.over() {
		return
	}
	w.hears(true)
	defer w.hears(false)
	role := oneOf(w.asking.rnd, w.looked...)
	for began := time.Now(); time.Since(began) < w.stretched(3*askFor) && !w.over(); w.until(time.Second, w.over) {
		p := w.leaderOf(role)
		others := slices.DeleteFunc(w.living(), func(q *proc) bool { return q == p })
		if p == nil || len(others) == 0 {
			continue
		}
		q := oneOf(w.asking.rnd, others...)
		token, _ := p.Token(role)
		err := w.asks(w.witness.Neli, "witness", neli.Request{Role: role, To: q.self}, transferred{p, q, role, token})
		switch {
		case err == nil:
			w.opts.Seen.Count("asked in quiet times: transferred")
			return
		case p.heed.policy != policyAccept && errors.Is(err, neli.ErrRefused):
			w.opts.Seen.Count("asked in quiet times: refused")
			return
		}
	}
	if !w.over() && len(w.living()) > 1 {
		w.violated("a request of role %d has not come to an end", role)
	}
}
