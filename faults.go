package neli

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/goneli/neli/internal/confluent"
	"github.com/goneli/neli/internal/redact"
	"github.com/goneli/neli/kafka"
)

// faults collects the faults of a configuration.
type faults struct {
	list   []error
	fields []string
}

// check adds a fault unless ok: the field, its value and the rule that it broke.
func (f *faults) check(ok bool, field string, value any, rule string) {
	if !ok {
		f.list = append(f.list, fmt.Errorf("%s: %s %s", field, quoted(fmt.Sprint(value)), rule))
		f.fields = append(f.fields, field)
	}
}

// longestShown is how much of a faulty value an error shows, in bytes.
const longestShown = 300

// quoted returns a value in quotes for an error, and cuts it if it is long.
func quoted(value string) string {
	if n := len(value); n > longestShown {
		return fmt.Sprintf("%q… (%d bytes)", value[:longestShown], n)
	}
	return fmt.Sprintf("%q", value)
}

// has reports whether the field has a fault.
func (f *faults) has(field string) bool { return slices.Contains(f.fields, field) }

func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return fmt.Errorf("neli: invalid configuration:\n%w", errors.Join(f.list...))
}

// properties adds the properties that the Kafka clients refuse. Only the clients know all names and
// values, so it makes and closes one client of each kind. A property that several clients refuse is
// reported once, and not at all if it already has a fault. Call properties when Config.LoginToken's call
// has ended: no check needs a token. Small logs have no properties; for them it adds the faults of
// their own configuration.
func (f *faults) properties(s *settings) {
	p := s.Provider
	if _, small := p.(kafka.SmallLogs); small {
		if c, can := p.(kafka.Checker); can {
			if err := c.Check(); err != nil {
				f.list = append(f.list, joined(err)...)
			}
		}
		return
	}
	if p == nil {
		var err error
		if p, err = confluent.New(); err != nil {
			f.list = append(f.list, err)
			return
		}
	}
	p, err := s.signingIn(p)
	if err != nil {
		f.check(false, "LoginToken", "", err.Error())
		return
	}
	quiet := slog.New(slog.DiscardHandler)
	f.refused(s, closing(p.Producer(s.producerProperties(), quiet)))
	if s.Mode != NonExclusive {
		f.refused(s, closing(p.LogReader(s.readerProperties(), quiet)))
	}
	if s.Mode == NonExclusive || s.Nomination == NominationAssigned && !s.Observer {
		f.refused(s, closing(p.GroupConsumer(s.groupProperties(), quiet)))
	}
}

// closing closes a client that was made only to check its properties.
func closing[C interface{ Close() error }](client C, err error) error {
	if err == nil {
		_ = client.Close()
	}
	return err
}

// refused adds the faults of one client's error. If there are other faults, it adds only those
// that name a property set by the user: the library derives some properties from settings that may
// be faulty themselves.
func (f *faults) refused(s *settings, err error) {
	if err == nil {
		return
	}
	before := len(f.fields) > 0
	for _, part := range joined(err) {
		named, known := false, false
		for name := range s.kafka {
			if strings.Contains(part.Error(), name) {
				named, known = true, known || f.has("KafkaConfig["+name+"]")
			}
		}
		text := strings.TrimSpace(part.Error()) // some end with a newline
		if named {
			text = "KafkaConfig: " + text
		} else {
			text = "Kafka client: " + text
		}
		twice := slices.ContainsFunc(f.list, func(e error) bool { return e.Error() == text })
		if !known && !twice && (named || !before) {
			f.list = append(f.list, redact.As(part, text))
		}
	}
}

// joined returns the errors joined in err (errors.Join), or err alone.
func joined(err error) []error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		many, ok := e.(interface{ Unwrap() []error })
		if !ok {
			continue
		}
		parts := many.Unwrap()
		if errors.Join(parts...).Error() != e.Error() {
			continue // it wraps several errors, but does not join them
		}
		var all []error
		for _, part := range parts {
			all = append(all, joined(part)...)
		}
		return all
	}
	return []error{err}
}
