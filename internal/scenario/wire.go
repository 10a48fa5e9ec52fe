package scenario

import (
	"encoding/json"
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/kafka"
)

// topic is the topic of the group "app".
const topic = "app.neli"

// Decode reads a record of a group, in any log. It returns nil for anything else.
func Decode(value []byte, group string) *lease.Record {
	var of struct{ Log string }
	_ = json.Unmarshal(value, &of)
	r, err := lease.Codec{Group: group, Log: of.Log}.Decode(value)
	if err != nil {
		return nil
	}
	return r
}

// Records returns the records of a kind in a log of the group "app".
func (c *Cluster) Records(p int, kind lease.Kind) []kafka.Record {
	return slices.DeleteFunc(c.Broker.Records(topic, p), func(r kafka.Record) bool {
		d := Decode(r.Value, "app")
		return d == nil || d.Kind != kind
	})
}

// Contest counts how often roles were claimed, how often such a claim won, and the Claims' records.
type Contest struct{ Claims, Won, Records int }

// Contest folds the n logs of the group "app" from their beginnings, as an outside observer.
func (c *Cluster) Contest(n int) (k Contest) {
	for p := range n {
		fold := lease.New(lease.Rules{Process: "outsider", T: clock.Tmax, History: 1000})
		fold.Begin(0, true, clock.Instant{})
		for _, raw := range c.Broker.Records(topic, p) {
			r := Decode(raw.Value, "app")
			if r == nil {
				fold.Skip(raw.Offset, clock.Instant{})
				continue
			}
			fold.Read(raw.Offset, r, clock.Instant{})
			if r.Kind != lease.Claim {
				continue
			}
			k.Records++
			k.Claims += len(r.Roles)
			for _, role := range r.Roles {
				if g, held := fold.Holder(role); held && g.Token == raw.Offset {
					k.Won++
				}
			}
		}
	}
	return k
}

// Less returns the difference to an earlier Contest.
func (k Contest) Less(before Contest) Contest {
	return Contest{k.Claims - before.Claims, k.Won - before.Won, k.Records - before.Records}
}
