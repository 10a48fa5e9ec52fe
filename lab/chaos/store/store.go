package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goneli/neli/fence"
)

// A Store is written to by the leaders of some roles, and read by all members. Lead may be called
// concurrently, for different terms; Read is for one goroutine.
type Store interface {
	// Lead calls work with a Writer for a term, and again with another Writer if work returns an error and the store has a better
	// one. It returns when work has returned nil, when ctx has ended, or when the store refuses the term for good.
	Lead(ctx context.Context, t Term, work func(context.Context, Writer) error) error
	// Read returns what was written to a role last, and under which token.
	Read(ctx context.Context, role int) (token, value int64, err error)
	// Concurrent reports whether a Writer may be used by several goroutines.
	Concurrent() bool
	Close()
}

// A Writer writes for one term.
type Writer interface {
	// Write returns whether the value was accepted. After an error other than ErrNotSent nobody can know that.
	Write(ctx context.Context, value int64) (accepted bool, err error)
}

// Term is one leadership of a role.
type Term struct {
	fence.Term
	Role   int
	Token  int64
	Member string
	// Claiming is called before the store is asked to refuse all earlier terms, and Claimed with
	// its answer. Stores that decide at each write call neither.
	Claiming func()
	Claimed  func(accepted bool)
}

// ErrNotSent wraps the error of an operation that did not reach the store, and so has no effect now or later.
var ErrNotSent = errors.New("store: not sent")

// Kinds of stores.
const (
	Register     = "register"     // a row of PostgreSQL whose update has the token as a predicate
	Hold         = "hold"         // PostgreSQL by fence.Postgres and fence.PostgresHold
	Transactions = "transactions" // Kafka by fence.Transactions
)

// Kinds returns the kinds of stores that are available, with brokers or without.
func Kinds(brokers bool) []string {
	if brokers {
		return []string{Register, Hold, Transactions}
	}
	return []string{Register, Hold}
}

// Check returns an error if a name is not that of a kind of store.
func Check(names []string, brokers bool) error {
	if len(names) == 0 {
		return errors.New("no store is named")
	}
	for _, name := range names {
		if !slices.Contains(Kinds(brokers), name) {
			return fmt.Errorf("no store here is called %q; there are %q", name, Kinds(brokers))
		}
	}
	return nil
}

// Config says where stores are.
type Config struct {
	DSN       string // of PostgreSQL
	Bootstrap string // of Kafka
	Franz     bool   // Transactions use franz-go; if false, confluent-kafka-go
	// Unfenced leaves the fence out of Hold and Transactions, to see that the checks notice it.
	Unfenced bool
}

// Open returns a store for each role, by the names of their kinds. Roles of one kind share a store.
func Open(c Config, names []string) ([]Store, error) {
	byName := map[string]Store{}
	stores := make([]Store, len(names))
	for role, name := range names {
		if byName[name] == nil {
			s, err := open(c, name)
			if err != nil {
				return nil, err
			}
			byName[name] = s
		}
		stores[role] = byName[name]
	}
	return stores, nil
}

func open(c Config, name string) (Store, error) {
	if name == Transactions {
		return newTransactions(c)
	}
	db, err := openSQL(c.DSN, nil)
	if err != nil {
		return nil, err
	}
	if name == Hold {
		return &hold{register{db}, c.Unfenced}, nil
	}
	return &register{db}, nil
}

// An Entry is one write in the store's own order.
type Entry struct {
	Serial   int64
	Role     int
	Token    int64
	Value    int64
	Member   string
	Accepted bool
	Stale    bool // a higher token had written before: without a guard this write would have overwritten it
}
