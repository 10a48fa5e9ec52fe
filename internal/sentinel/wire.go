package sentinel

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/goneli/neli/internal/clock"
)

// The wire form is one JSON object in each packet of a unix socket of type SEQPACKET, which
// keeps packets apart. The first packet of a member's connection comes with one file, its
// pidfd.

// maxMessage is the size of a packet.
const maxMessage = 4096

// Registration says who a member is and where it contends.
type Registration struct {
	Topic   string        `json:"topic,omitempty"`    // empty: small logs without a broker
	TopicID string        `json:"topic_id,omitempty"` // without a topic: of the small logs; empty: they have none
	Logs    int           `json:"logs,omitempty"`     // of Config.Logs; 0: one replicated log
	Group   string        `json:"group"`
	Process string        `json:"process"`
	Secret  string        `json:"secret"`
	Name    string        `json:"name,omitempty"` // for people
	T       time.Duration `json:"t"`
	Rho     float64       `json:"rho"`
	Running bool          `json:"running,omitempty"` // it runs a command that may outlive it
}

// request is what a member or a guard says, and nothing beside one field of it.
type request struct {
	Register *Registration `json:"register,omitempty"`
	Guard    *guardian     `json:"guard,omitempty"`
	Clear    bool          `json:"clear,omitempty"`   // of a guard: nothing is left of the command
	Goodbye  bool          `json:"goodbye,omitempty"` // of a member: forget it
	Count    *query        `json:"count,omitempty"`   // of anybody: how many members of a group there are
}

// query names a group.
type query struct {
	Topic string `json:"topic"`
	Group string `json:"group"`
}

// Count is what a sentinel says of a group: how many of its members are registered, and how many of these would be
// released.
type Count struct {
	Registered int `json:"registered"`
	Watched    int `json:"watched"`
}

// guardian says whose command a connection is for.
type guardian struct {
	Process string `json:"process"`
	Secret  string `json:"secret"`
}

// Answer is what the sentinel says, to each request and whenever its state changes.
type Answer struct {
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"` // why it refuses
}

// State is what a sentinel does for a member.
type State string

// The states.
const (
	None       State = "none"       // no sentinel is configured, reached or ready
	Registered State = "registered" // it knows the member, and not its log yet
	Watching   State = "watching"   // a death will be followed by a Release
	Refused    State = "refused"    // the member costs T
	Gone       State = "gone"       // the answer to a goodbye or a clear
)

const (
	idLength   = 26 // 130 bits
	maxSecret  = 128
	maxText    = 256
	maxSmall   = 7
	minimumT   = 10 * time.Millisecond
	maximumRho = 0.2
)

// NewSecret returns a member's secret: 260 random bits.
func NewSecret() string { return rand.Text() + rand.Text() }

// ProcessID is the process id of a member with this secret. Everybody who reads the topic
// knows the id, and nobody can tell the secret by it.
func ProcessID(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base32.StdEncoding.EncodeToString(sum[:])[:idLength]
}

// errNotItsSecret: the id is another's.
var errNotItsSecret = errors.New("the process id is not that of the secret")

// check looks at what a registration says. It is untrusted.
func (r *Registration) check() error {
	bad := func(what string) error { return fmt.Errorf("registration: %s", what) }
	for _, text := range []string{r.Topic, r.TopicID, r.Group, r.Name} {
		if len(text) > maxText || !utf8.ValidString(text) {
			return bad("a text is too long or not UTF-8")
		}
	}
	switch {
	case r.Group == "":
		return bad("no group")
	case r.Logs < 0 || r.Logs > maxSmall:
		return bad("logs")
	case r.T < minimumT || r.T > clock.Tmax || !(r.Rho >= 0 && r.Rho <= maximumRho):
		return bad("t or rho")
	}
	return checkSecret(r.Process, r.Secret)
}

func checkSecret(process, secret string) error {
	if secret == "" || len(secret) > maxSecret || ProcessID(secret) != process {
		return errNotItsSecret
	}
	return nil
}

// Place is where a member contends: what one Watch is for. All members of one place share
// the logs.
type Place struct {
	Topic, TopicID, Group string
	Logs                  int
	T                     time.Duration // of small logs: the same for the whole group; else 0
	Rho                   float64       // likewise
}

// Place returns where the member contends.
func (r *Registration) Place() Place {
	p := Place{Topic: r.Topic, TopicID: r.TopicID, Group: r.Group, Logs: r.Logs}
	if p.Small() {
		p.T, p.Rho = r.T, r.Rho
	}
	return p
}

// Small reports whether the logs are small ones.
func (p Place) Small() bool { return p.Topic == "" || p.Logs > 1 }
