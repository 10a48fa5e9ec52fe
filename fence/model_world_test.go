package fence

import (
	"fmt"
	"unsafe"
)

// The model of Transactions: one role, one transactional.id, and terms that follow each other. Each
// term is an actor that takes the steps of after, and may stop between any two of them for any
// time. Requests arrive late or never, and answers get lost. The coordinator is that of Apache
// Kafka 4.3.1, with one data partition. It acts atomically: a change of coordinator is a request or
// an answer that is lost.

const maxTerms, maxRequests, maxIDs = 3, 6, 4

// The positions of an actor. The first ones are the steps of after, split where requests are sent and answered.
const (
	pIdle  = int8(iota) // the term has not begun
	pAsk                // about to ask whether the term lasts
	pSend               // about to send an init
	pWaitI              // waits for the answer
	pCheck              // about to ask again
	pRead               // about to read the state
	pProd               // about to produce
	pWaitA              // waits for AddPartitionsToTxn (V1)
	pBatch              // about to send the batch (V1)
	pWaitP              // waits for Produce
	pEnd                // about to commit
	pWaitC              // waits for EndTxn(commit)
	pStop               // stopped for good
	pDone               // has committed everything that it had to
	pErr                // refused; the client's own recovery begins
	pRead0              // reads before its init
	pAbort              // about to abort
	pWaitX              // waits for EndTxn(abort)
	pAuto               // the client's own recovery: about to send its init
	pWaitR              // waits for the answer to that
)

// States of the coordinator.
const (
	cEmpty = int8(iota)
	cOngoing
	cPrepCommit
	cPrepAbort
	cCommit
	cAbort
)

// Kinds of requests.
const (
	mNone = int8(iota)
	mInit
	mAdd
	mProd
	mEnd
)

// Answers.
const (
	rNone = int8(iota)
	rOK
	rErr
	rConc
)

type request struct {
	kind, actor int8
	gen, epoch  int8 // of the sender; of an init the expected one, or −1
	awaited     bool // the sender still waits for this very request
	commit      bool
	stage       int8 // of a batch: 0 to be verified, 1 verified, 2 verification cancelled by a marker
}

type actor struct {
	pc         int8
	gen, epoch int8
	done       int8
	answer     int8
	aGen       int8 // what the answer contains
	aEpoch     int8
	firm       bool // the term lasted when asked after an init
	read       bool
	stale      bool // a former term has committed something that it has not read
	inited     bool
	asked      bool
	later      bool // this is not the term's first init
}

type coordinator struct {
	known       bool
	gen         int8
	epoch, last int8
	state       int8
}

// written is a record in an open transaction; actor counts from 1.
type written struct{ gen, actor int8 }

// modelState has only fields of one byte, so that it has no padding.
type modelState struct {
	lead      int8 // the present term, from 1
	faults    int8 // faults that may still happen
	again     int8 // how often the last term was refused while it lasted
	other     bool // another role's transaction is open; it began before all others
	actors    [maxTerms]actor
	coords    [maxTerms]coordinator // only the first one, unless each term has an id of its own
	fenced    [maxIDs]int8          // the partition's epoch by producer id
	open      [4]written
	committed [maxTerms]int8
	requests  [maxRequests]request
	gens      int8
	fault     int8
}

// The faults that the model looks for.
const (
	fNone = int8(iota)
	fLate
	fRead
	fAgain
	fFull
)

var modelFaults = [...]string{fNone: "",
	fLate:  "a former leader's records were committed after the new one's check",
	fRead:  "the leader acted on a state that misses a former leader's commit",
	fAgain: "the rightful leader is refused again and again",
	fFull:  "the model is too small",
}

const modelStuck = "the rightful leader stands still"

// modelConfig bounds the model: its size, the protocol, and the rules that are left out.
type modelConfig struct {
	name   string
	terms  int8
	work   int8 // transactions of a term
	faults int8 // requests given up or lost, time-outs, ids that expire
	v2     bool // the brokers have transaction.version 2 (KIP-890 part 2)
	v2Cli  bool // and the client speaks it: franz-go does, librdkafka does not
	expire bool // transactional.id.expiration.ms may pass
	rotate bool // an init may bring a new producer id
	other  bool // another role's transaction is open
	aborts bool // the application may abort as well

	// Wrong variants of the rules. Each must lead to a fault, as leaving out a rule of after does.
	unchecked  bool // nobody asks after an init
	checkOnce  bool // asks only after the term's first init
	atCommit   bool // asks before each commit instead of after an init
	reuse      bool // a term reuses the producer of the term before
	idPerTerm  bool
	readFirst  bool // the state is read before the init
	readStable bool // the state is read up to the last stable offset
	early      bool // the producer is made before the term
	ofRole     bool // uses IsLeaderOf instead of Valid: terms 1 and 3 are of one process
	recovery   recovery
	noVerify   bool // brokers do not verify
	noBump     bool // an init does not raise the epoch
	busyInit   bool // an init succeeds while a commit is being written
}

// recovery is what a client does by itself after a refusal.
type recovery int8

const (
	noRecovery recovery = iota
	guarded             // initialises again with its own producer id and epoch
	unguarded
)

// bound returns how often the last term may be refused: once by each former leader, and once by each fault.
func (k *modelConfig) bound() int8 { return k.terms - 1 + k.faults }

func (k *modelConfig) valid(s *modelState, i int8) bool {
	return s.lead == i+1 || k.ofRole && i == 0 && s.lead == 3
}

func (k *modelConfig) coord(s *modelState, i int8) *coordinator {
	if k.idPerTerm {
		return &s.coords[i]
	}
	return &s.coords[0]
}

func (s *modelState) send(r request) bool {
	for j := range s.requests {
		if s.requests[j].kind == mNone {
			s.requests[j] = r
			return true
		}
	}
	s.fault = fFull
	return false
}

// leave makes the sender stop waiting for a request, which may be lost.
func (s *modelState) leave(i int8, lost bool) {
	for j := range s.requests {
		if r := &s.requests[j]; r.kind != mNone && r.actor == i && r.awaited {
			r.awaited = false
			if lost {
				*r = request{}
			}
		}
	}
	s.actors[i].answer, s.actors[i].aGen, s.actors[i].aEpoch = rNone, 0, 0
}

// modelWorld is one state of the model.
type modelWorld struct {
	k *modelConfig
	modelState
}

func newModelWorld(k *modelConfig) modelWorld {
	w := modelWorld{k: k}
	w.faults, w.other = k.faults, k.other
	for i := range w.actors {
		w.actors[i].epoch = -1
	}
	for i := range w.coords {
		w.coords[i].epoch, w.coords[i].last = -1, -1
	}
	for i := range w.fenced {
		w.fenced[i] = -1
	}
	w.canon()
	return w
}

func (w modelWorld) Look() string { return modelFaults[w.fault] }

func (w modelWorld) Views() string {
	return fmt.Sprintf("    term %d, coordinator %+v, open %v, committed %v\n", w.lead, w.coords[0], w.open, w.committed)
}

func encodeModel(w modelWorld) []byte {
	return (*[unsafe.Sizeof(w.modelState)]byte)(unsafe.Pointer(&w.modelState))[:]
}

// modelStep receives a state that follows.
type modelStep func(t *modelWorld, what string, args ...any)

// Steps calls step for everything that may happen.
func (w modelWorld) Steps(step func(func() string, modelWorld, string)) {
	possible := false
	give := modelStep(func(t *modelWorld, what string, args ...any) {
		possible = true
		t.canon()
		step(func() string { return fmt.Sprintf(what, args...) }, *t, "")
	})
	w.terms(give)
	for i := range w.k.terms {
		w.act(i, give)
	}
	for j := range w.requests {
		if w.requests[j].kind != mNone && (j == 0 || w.requests[j] != w.requests[j-1]) {
			w.arrive(j, give)
		}
	}
	w.coordinate(give)
	if last := w.actors[w.k.terms-1]; !possible && last.pc != pDone {
		step(func() string { return "nothing more can happen" }, w, modelStuck)
	}
}

// terms begins the next term. The former leader's Valid is false before the new leader's is true.
func (w *modelWorld) terms(give modelStep) {
	k := w.k
	if w.lead < k.terms {
		t := *w
		t.lead++
		i := t.lead - 1
		a := &t.actors[i]
		switch {
		case k.reuse && i > 0:
			before := t.actors[i-1]
			a.gen, a.epoch, a.inited, a.later, a.pc = before.gen, before.epoch, true, true, pCheck
		case k.early && i > 0:
			if a.pc == pIdle {
				a.pc = pAsk
			}
		case k.readFirst:
			a.pc = pRead0
		default:
			a.pc = pAsk
		}
		give(&t, "term %d begins", t.lead)
	}
	if k.early && w.lead >= 1 && w.lead < k.terms && w.actors[w.lead].pc == pIdle {
		t := *w
		t.actors[w.lead].pc = pSend
		give(&t, "%d makes its producer before its term", w.lead+1)
	}
	if w.other {
		t := *w
		t.other = false
		give(&t, "the other role's transaction ends")
	}
}
