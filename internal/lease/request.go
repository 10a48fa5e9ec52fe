package lease

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A Request is a field of a Ping, and its Answer a field of the Pong. Older readers and the rules
// of the lease ignore both fields. A Request is not a kind of its own, because the sender of a record
// of unknown kind might hold any role, so that readers would claim nothing for a minute
// (docs/compatibility.md).

// Request asks the addressee of a Ping to give up roles.
type Request struct {
	ID   uint64 // the sender's own number; the same if it asks again
	Role int    // by the number that the application uses
	Verb Verb
	To   string // Transfer: the member that is to lead, by its id or name
}

// Verb is what a Request asks for.
type Verb string

// The verbs. An addressee refuses any other verb, such as a newer version may send.
const (
	Transfer  Verb = "transfer"  // hand the role over to To
	StepDown  Verb = "step_down" // give up everything, and claim nothing for a while
	Rebalance Verb = "rebalance" // share out now what exceeds the own share
)

// Answer is the addressee's answer to a Request. It is part of a Pong.
type Answer struct {
	ID    uint64 // of the Request
	Stage Stage
	Text  string // why it was refused or has failed, for people; cut off if too long
}

// Stage is the progress of a Request.
type Stage string

// The stages. Accepted is followed by Done or Failed. Unknown stages are ignored.
const (
	Accepted Stage = "accepted" // it is being carried out
	Refused  Stage = "refused"
	Done     Stage = "done"
	Failed   Stage = "failed" // it was accepted but could not be carried out
)

const (
	maxRequestID = 1 << 53 // some JSON readers have fewer than 64 bits for a number
	maxWord      = 32      // the length of a Verb or Stage in bytes
)

type wireRequest struct {
	ID   uint64 `json:"id"`
	Role int    `json:"role"`
	Verb Verb   `json:"verb"`
	To   string `json:"to,omitempty"`
}

type wireAnswer struct {
	ID    uint64 `json:"id"`
	Stage Stage  `json:"stage"`
	Text  string `json:"text,omitempty"`
}

// packRequest and packAnswer write the fields. A nil field is left out of the record.
func packRequest(q *Request) json.RawMessage {
	if q == nil {
		return nil
	}
	return raw(wireRequest{q.ID, q.Role, q.Verb, q.To})
}

func packAnswer(a *Answer) json.RawMessage {
	if a == nil {
		return nil
	}
	return raw(wireAnswer{a.ID, a.Stage, clip(a.Text)})
}

func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("neli: encoding a request: " + err.Error()) // no field can fail
	}
	return b
}

// said reports whether a record has a field; null counts as absent.
func said(field json.RawMessage) bool { return len(field) > 0 && !bytes.Equal(field, []byte("null")) }

// unpackRequest reads the field of a Ping.
func unpackRequest(field json.RawMessage) (*Request, error) {
	var w wireRequest
	if err := json.Unmarshal(field, &w); err != nil {
		return nil, fmt.Errorf("%w: request: %w", ErrMalformed, err)
	}
	if w.ID == 0 || w.ID > maxRequestID || w.Role < 0 || w.Role >= MaxRoles || w.Verb == "" || len(w.Verb) > maxWord || len(w.To) > maxName {
		return nil, fmt.Errorf("%w: request: id, role, verb or to", ErrMalformed)
	}
	return &Request{w.ID, w.Role, w.Verb, w.To}, nil
}

// unpackAnswer reads the field of a Pong.
func unpackAnswer(field json.RawMessage) (*Answer, error) {
	var w wireAnswer
	if err := json.Unmarshal(field, &w); err != nil {
		return nil, fmt.Errorf("%w: answer: %w", ErrMalformed, err)
	}
	if w.ID == 0 || w.ID > maxRequestID || w.Stage == "" || len(w.Stage) > maxWord || len(w.Text) > maxName {
		return nil, fmt.Errorf("%w: answer: id, stage or text", ErrMalformed)
	}
	return &Answer{w.ID, w.Stage, w.Text}, nil
}

// talk reads the fields that only a Ping or a Pong may have. In other records they are
// ignored, as older readers ignore them: if some readers refused such a record and others
// folded it, their folds would differ.
func (w *wire) talk(r *Record) (err error) {
	if w.Kind == Ping && said(w.Request) {
		if r.Request, err = unpackRequest(w.Request); err != nil {
			return err
		}
	}
	if w.Kind == Pong && said(w.Answer) {
		if r.Answer, err = unpackAnswer(w.Answer); err != nil {
			return err
		}
	}
	switch w.Kind {
	case Ping:
		r.Offer = unpackOffer(w.Offer)
	case Pong:
		r.Prepared = unpackPrepared(w.Prepared)
	case Beat, Claim, Release, Snapshot, Hello:
	}
	return nil
}
