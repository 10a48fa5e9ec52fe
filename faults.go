package neli

import (
	"errors"
	"fmt"
)

// faults collects everything that is wrong with a configuration.
type faults struct {
	list []error
}

// check notes a fault unless ok: the field, its value and the rule it broke.
func (f *faults) check(ok bool, field string, value any, rule string) {
	if !ok {
		f.list = append(f.list, fmt.Errorf("%s: %q %s", field, fmt.Sprint(value), rule))
	}
}

func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return fmt.Errorf("neli: invalid configuration:\n%w", errors.Join(f.list...))
}
