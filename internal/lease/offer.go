package lease

import (
	"encoding/json"
	"time"
)

// A Ping may have an Offer, and the Pong that answers it a Prepared. Older readers and the rules of the
// lease ignore both fields. A value of another form counts as none, so that readers of all versions read
// the rest of the record alike.

// Prepares is how a process prepares roles before it leads them. It announces this in a Hello or Pong.
type Prepares struct {
	Most int           // how many at once
	For  time.Duration // how long the preparation of one role may take
	// Standby says that it prepares roles also in case their holders die.
	Standby bool
}

// Offer tells the addressee of a Ping which roles are to be handed to it, so that it prepares them.
type Offer struct {
	N      uint64  // the sender's number; the offer replaces those with lower numbers in the same log
	Roles  []int32 // all that the sender offers in this log, ascending
	Urgent bool    // the sender cannot keep the roles
}

// Prepared is how far the sender of a Pong is with the roles of an Offer. Roles that it does not name wait.
type Prepared struct {
	N                      uint64  // the sender's number; it replaces a Prepared with a lower number
	Of                     uint64  // the N of the newest offer that it has read
	Running, Ready, Failed []int32 // ascending
}

const (
	// MaxPrepares is the largest number of roles that a process may prepare at once, and MaxPrepare the
	// longest time for one.
	MaxPrepares = 1000
	MaxPrepare  = 10 * time.Minute
	// MaxOffered is the largest number of roles that an Offer may name.
	MaxOffered = 4 * MaxPrepares

	maxOffers = 1 << 53 // some JSON readers have fewer than 64 bits for a number
)

type wirePrepares struct {
	Most    int           `json:"most"`
	For     time.Duration `json:"for"`
	Standby bool          `json:"standby,omitempty"`
}

type wireOffer struct {
	N      uint64 `json:"n"`
	Roles  string `json:"roles,omitempty"`
	Urgent bool   `json:"urgent,omitempty"`
}

type wirePrepared struct {
	N       uint64 `json:"n"`
	Of      uint64 `json:"of"`
	Running string `json:"running,omitempty"`
	Ready   string `json:"ready,omitempty"`
	Failed  string `json:"failed,omitempty"`
}

func packPrepares(p *Prepares) json.RawMessage {
	if p == nil {
		return nil
	}
	return raw(wirePrepares{p.Most, p.For, p.Standby})
}

func packOffer(o *Offer) json.RawMessage {
	if o == nil {
		return nil
	}
	return raw(wireOffer{o.N, packRoles(o.Roles), o.Urgent})
}

func packPrepared(p *Prepared) json.RawMessage {
	if p == nil {
		return nil
	}
	return raw(wirePrepared{p.N, p.Of, packRoles(p.Running), packRoles(p.Ready), packRoles(p.Failed)})
}

func unpackPrepares(field json.RawMessage) *Prepares {
	var w wirePrepares
	if json.Unmarshal(field, &w) != nil || w.Most < 1 || w.Most > MaxPrepares || w.For <= 0 || w.For > MaxPrepare {
		return nil
	}
	return &Prepares{w.Most, w.For, w.Standby}
}

func unpackOffer(field json.RawMessage) *Offer {
	var w wireOffer
	if json.Unmarshal(field, &w) != nil || w.N == 0 || w.N > maxOffers {
		return nil
	}
	roles, err := unpackRoles(w.Roles, MaxOffered)
	if err != nil {
		return nil
	}
	return &Offer{w.N, roles, w.Urgent}
}

func unpackPrepared(field json.RawMessage) *Prepared {
	var w wirePrepared
	if json.Unmarshal(field, &w) != nil || w.N == 0 || w.N > maxOffers || w.Of == 0 || w.Of > maxOffers {
		return nil
	}
	p := &Prepared{N: w.N, Of: w.Of}
	left := MaxOffered
	for _, list := range []struct {
		to   *[]int32
		from string
	}{{&p.Running, w.Running}, {&p.Ready, w.Ready}, {&p.Failed, w.Failed}} {
		roles, err := unpackRoles(list.from, left)
		if err != nil {
			return nil
		}
		*list.to, left = roles, left-len(roles)
	}
	return p
}
