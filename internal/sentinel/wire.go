package sentinel

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goneli/neli/internal/clock"
)

// Each packet is one JSON object. The unix socket has type SEQPACKET, which keeps packets apart. The
// first packet of a member's connection carries one file: the member's pidfd.

// maxMessage is the largest size of a packet, in bytes.
const maxMessage = 4096

// Registration identifies a member, and the topic and group in which it contends.
type Registration struct {
	Topic   string        `json:"topic,omitempty"`    // empty: small logs without a broker
	TopicID string        `json:"topic_id,omitempty"` // without a topic, the id of the small logs; empty: they have none
	Logs    int           `json:"logs,omitempty"`     // Config.Logs; 0: one replicated log
	Group   string        `json:"group"`
	Process string        `json:"process"`
	Secret  string        `json:"secret"`
	Name    string        `json:"name,omitempty"` // for people
	T       time.Duration `json:"t"`
	Rho     float64       `json:"rho"`
	Running bool          `json:"running,omitempty"` // it runs a command that may outlive it (neli run)
	Number  uint64        `json:"number,omitempty"`  // grows from each registration of a process to the next
}

// request is a packet to the sentinel. Exactly one field is set.
type request struct {
	Register *Registration `json:"register,omitempty"`
	Confirm  bool          `json:"confirm,omitempty"` // from a member that was asked: it has not given the registration up
	Settled  bool          `json:"settled,omitempty"` // from a member: the guards of all its commands have registered
	Guard    *guardian     `json:"guard,omitempty"`
	Clear    bool          `json:"clear,omitempty"`   // from a guard: nothing is left of the command
	Goodbye  bool          `json:"goodbye,omitempty"` // from a member: forget it
	Count    *query        `json:"count,omitempty"`   // from anybody: how many members has a group?
}

// query names a group.
type query struct {
	Topic string `json:"topic"`
	Group string `json:"group"`
}

// Count is the answer to a query: how many members of the group are registered, and how many of them
// the sentinel would release.
type Count struct {
	Registered int `json:"registered"`
	Watched    int `json:"watched"`
}

// guardian names the registration of the member for whose command a guard connects.
type guardian struct {
	Process string `json:"process"`
	Secret  string `json:"secret"`
	Number  uint64 `json:"number,omitempty"`
}

// Answer is a packet from the sentinel: the answer to a request, or a change of state.
type Answer struct {
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"` // why it refuses
}

// fitting returns the answer with as much of its reason as fits into a packet.
func (a Answer) fitting() Answer {
	whole := a.Reason[:min(len(a.Reason), 2*maxMessage)]
	a.Reason = whole
	for n := len(whole); ; {
		b, err := json.Marshal(a)
		over := len(b) - maxMessage
		if err != nil || over <= 0 {
			return a // an Answer has no field that could fail
		}
		n -= max(1, over/6) // JSON needs up to six bytes for one byte
		a.Reason = strings.ToValidUTF8(whole[:n], "") + "…"
	}
}

// State tells what a sentinel does for a member.
type State string

// The states.
const (
	None       State = "none"       // no sentinel is configured, or it has not answered yet
	Asked      State = "asked"      // it waits until the member confirms its registration
	Registered State = "registered" // it knows the member, but not its log or not all its commands yet
	Watching   State = "watching"   // it will release the member's roles when the member dies
	Refused    State = "refused"    // it will not: a crash costs T
	Gone       State = "gone"       // it has forgotten the member, as asked
)

const (
	idLength   = 26 // 130 bits
	maxSecret  = 128
	maxText    = 256
	maxSmall   = 7
	minimumT   = 10 * time.Millisecond
	maximumRho = 0.2
)

// longestPath leaves room for the zero that ends the path in a sockaddr_un of Linux, which has 108 bytes.
const longestPath = 107

// CheckSocket returns what is wrong with the path of a socket, in words that follow the path.
func CheckSocket(path string) error {
	switch {
	case path == "":
		return errors.New("must be the path of a unix socket")
	case len(path) > longestPath: // the kernel would say only that an argument is invalid
		return fmt.Errorf("is too long: a socket's path has at most %d bytes", longestPath)
	case path[0] == '@' || strings.ContainsRune(path, 0): // such a socket is in no directory, so anybody may listen
		return errors.New("must be a path in the file system: no @ at the beginning, no zero byte")
	}
	return nil
}

// NewSecret returns a member's secret: 260 random bits.
func NewSecret() string { return rand.Text() + rand.Text() }

// ProcessID returns the process id of a member with this secret. Everybody who reads the topic knows
// the id, but cannot derive the secret from it.
func ProcessID(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base32.StdEncoding.EncodeToString(sum[:])[:idLength]
}

// errNotItsSecret: the process id is not the hash of the secret.
var errNotItsSecret = errors.New("the process id is not that of the secret")

// check validates a registration, which comes from an untrusted process.
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

// Place identifies the logs of a group. There is one Watch for each Place.
type Place struct {
	Topic, TopicID, Group string
	Logs                  int
	T                     time.Duration // of small logs: the same for the whole group; else 0
	Rho                   float64       // likewise
}

// Place returns the logs in which the member contends.
func (r *Registration) Place() Place {
	p := Place{Topic: r.Topic, TopicID: r.TopicID, Group: r.Group, Logs: r.Logs}
	if p.Small() {
		p.T, p.Rho = r.T, r.Rho
	}
	return p
}

// Small reports whether the logs are small ones.
func (p Place) Small() bool { return p.Topic == "" || p.Logs > 1 }
