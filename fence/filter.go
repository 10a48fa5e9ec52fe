package fence

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Filter tells a reader which records to take, and which ones are a former leader's that
// came too late. Each reader of the topics has one. The zero value is ready. It is not safe
// for concurrent use.
//
// It holds for append-only topics that all readers filter. It does not for compacted topics
// (ErrCompacted), for readers that keep no State, where retention has removed the barrier
// but not the late record, and where tokens went back (Config.TokenBase).
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

// Admit reports whether a record is to be taken. header is the value of its Header; the
// records of a partition are asked about in their order, barriers as well.
//
// A record that is not admitted was written by a leader whose successor had begun to write
// there, and no reader with a Filter takes it. One that is admitted was in its place before
// that. A value that Stamp has not made is an error, and changes nothing; it is for the
// application to say what unstamped records are worth.
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

// State returns what has been seen of a partition, as text. Store it together with the
// offset, atomically: in the row that has the offset, or as the offset commit's metadata
// (4,096 bytes at most unless the broker's offset.metadata.max.bytes says otherwise; a role
// takes up to 44 bytes and its group's name). A reader that starts from an offset without its
// state takes records that others drop.
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
		panic(err) // there is nothing in an entry that JSON has not
	}
	return string(text)
}

// Restore sets what has been seen of a partition to what State returned, when the reader
// begins at the offset that it was stored with. "" is the state at the partition's first
// record. An error leaves the filter as it was.
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
