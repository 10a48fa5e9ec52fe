package fence

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Filter tells a reader which records to use, and which ones a former leader wrote too late. Each
// reader of the topics has its own. The zero value is ready for use. It is not safe for concurrent
// use.
//
// It works for append-only topics that all readers filter. It does not work for compacted topics
// (ErrCompacted), for readers that keep no State, if retention has removed the barrier but not the
// late record, or if tokens went back (Config.TokenBase).
type Filter struct {
	highest map[place]map[source]int64
}

// place is a partition. Tokens are compared within one: a record of the rightful leader may
// be read after its successor's barrier in another partition.
type place struct {
	topic     string
	partition int32
}

func placeOf(topic string, partition int32) place { return place{topic, partition} }

// Admit reports whether to use a record. header is the value of its Header. Call Admit for all
// records of a partition in order, including barriers.
//
// A record that is not admitted lies behind a record of a later term in that partition, and no
// reader with a Filter uses it. An admitted record lies before all records of later terms there. A
// value that Stamp has not made is an error, and changes nothing. The application decides what to do
// with unstamped records.
func (f *Filter) Admit(topic string, partition int32, header []byte) (bool, error) {
	token, who, err := read(header)
	if err != nil {
		return false, err
	}
	at := placeOf(topic, partition)
	if most, known := f.highest[at][who]; known && token < most {
		return false, nil
	}
	f.raise(at, who, token)
	return true, nil
}

func (f *Filter) raise(at place, who source, token int64) {
	if f.highest == nil {
		f.highest = map[place]map[source]int64{}
	}
	if f.highest[at] == nil {
		f.highest[at] = map[source]int64{}
	}
	f.highest[at][who] = token
}

// entry is a source's highest token in a partition.
type entry struct {
	Token int64  `json:"t"`
	Role  int    `json:"r"`
	Group string `json:"g"`
}

// State returns what this filter has seen of a partition, as text. Store it together with the
// offset, atomically: in the row that has the offset, or as the offset commit's metadata. (Metadata
// has 4,096 bytes at most unless the broker's offset.metadata.max.bytes says otherwise; a role takes
// up to 44 bytes and its group's name.) A reader that starts from an offset without its state uses
// records that others drop.
func (f *Filter) State(topic string, partition int32) string {
	entries := []entry{}
	for who, token := range maps.All(f.highest[placeOf(topic, partition)]) {
		entries = append(entries, entry{token, who.role, who.group})
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Role, b.Role))
	})
	text, err := json.Marshal(entries)
	if err != nil {
		panic(err) // JSON can encode every field of an entry
	}
	return string(text)
}

// Restore sets what was seen of a partition to a text that State returned. Call it when the reader
// begins at the offset stored with that text. "" is the state at the partition's first record. An
// error leaves the filter unchanged.
func (f *Filter) Restore(topic string, partition int32, state string) error {
	var entries []entry
	if state != "" {
		if err := json.Unmarshal([]byte(state), &entries); err != nil {
			return fmt.Errorf("fence: state of %s/%d is %.100q (%d bytes): %.200v", topic, partition, state, len(state), err)
		}
	}
	at := placeOf(topic, partition)
	delete(f.highest, at)
	for _, e := range entries {
		f.raise(at, source{e.Group, e.Role}, e.Token)
	}
	return nil
}
