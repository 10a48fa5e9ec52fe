package quorum

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"unsafe"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// The model has to copy leases and to compare their states. The lease of one log belongs to
// another package, so both are done by reflection: a field added to it later becomes part of the
// state without being named here.

// modelOmitted are the fields that are no part of the state: history, names, scratch, and what
// follows from other fields.
var modelOmitted = []string{
	"Lease.rules", "Lease.trail", "Lease.changed", "Lease.won", // constant; history; scratch
	"own.seq",                                 // only has to be a number never used before
	"fold.hash", "session.key", "Holder.Name", // depend on names
	"fold.index", "fold.grants", // follow from the sessions and tokens
	"own.claiming",            // follows from the Claims in flight, each of one role
	"Lease.newerAt",           // matters only with newer versions, which the model of package lease has
	"join.since", "join.cost", // only matter with more records than the model has
}

// modelType says how to treat values of one type.
type modelType struct {
	own   func(p unsafe.Pointer)                // replaces what a shallow copy shares with copies; nil: all that is shared is never written to
	write func(k *modelCoder, p unsafe.Pointer) // writes the value; nil: it is no part of the state
}

// modelTypes is a cache by type.
var modelTypes = map[reflect.Type]*modelType{}

func copyLease(l *lease.Lease) *lease.Lease {
	c := *l
	modelTypeOf(reflect.TypeFor[lease.Lease]()).own(unsafe.Pointer(&c))
	return &c
}

func (k *modelCoder) lease(l *lease.Lease) {
	modelTypeOf(reflect.TypeFor[lease.Lease]()).write(k, unsafe.Pointer(l))
}

func modelTypeOf(t reflect.Type) *modelType {
	m := modelTypes[t]
	if m == nil {
		m = newModelType(t)
		modelTypes[t] = m
	}
	return m
}

func newModelType(t reflect.Type) *modelType {
	switch t {
	case reflect.TypeFor[clock.Mono]():
		return &modelType{write: func(k *modelCoder, p unsafe.Pointer) { k.age(*(*clock.Mono)(p)) }}
	case reflect.TypeFor[clock.Raw]():
		return &modelType{write: func(k *modelCoder, p unsafe.Pointer) { k.age(clock.Mono(*(*clock.Raw)(p))) }}
	case reflect.TypeFor[clock.Instant](): // all clocks of a model run at the same rate
		return &modelType{write: func(k *modelCoder, p unsafe.Pointer) { k.age((*clock.Instant)(p).Mono) }}
	case reflect.TypeFor[lease.Session]():
		return &modelType{write: func(k *modelCoder, p unsafe.Pointer) { k.id(*(*lease.Session)(p)) }}
	case reflect.TypeFor[*lease.Record](): // records are never written to
		return &modelType{write: func(k *modelCoder, p unsafe.Pointer) { k.record(*(**lease.Record)(p)) }}
	}
	value := func(p unsafe.Pointer) reflect.Value { return reflect.NewAt(t, p).Elem() }
	switch t.Kind() {
	case reflect.Bool:
		return &modelType{write: func(k *modelCoder, p unsafe.Pointer) { k.flag(*(*bool)(p)) }}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return &modelType{write: func(k *modelCoder, p unsafe.Pointer) { k.number(value(p).Int()) }}
	case reflect.Uint64:
		return &modelType{write: func(k *modelCoder, p unsafe.Pointer) { k.number(int64(*(*uint64)(p))) }}
	case reflect.String:
		return &modelType{write: func(k *modelCoder, p unsafe.Pointer) { k.out = append(append(k.out, *(*string)(p)...), 0) }}
	case reflect.Struct:
		return modelStruct(t)
	case reflect.Slice:
		return modelSlice(t, value)
	case reflect.Map:
		return modelMap(t, value)
	case reflect.Pointer:
		return modelPointer(t, value)
	default:
		panic("no copy of a " + t.String() + " is known")
	}
}

func modelStruct(t reflect.Type) *modelType {
	type field struct {
		at uintptr
		*modelType
	}
	var owned, written []field
	for i := range t.NumField() {
		f := t.Field(i)
		name := t.Name() + "." + f.Name
		if name == "Lease.rules" {
			continue
		}
		m := modelTypeOf(f.Type)
		if m.own != nil {
			owned = append(owned, field{f.Offset, m})
		}
		switch write := m.write; name {
		case "own.ballot":
			m = &modelType{write: func(k *modelCoder, p unsafe.Pointer) { k.ballot(*(*int64)(p)) }}
		case "stamp.seq", "pending.seq":
			m = &modelType{write: func(k *modelCoder, p unsafe.Pointer) { k.seq(k.who, *(*uint64)(p)) }}
		case "join.kept": // only Snapshots need it
			m = &modelType{own: m.own, write: func(k *modelCoder, p unsafe.Pointer) {
				if k.snapshots {
					write(k, p)
				}
			}}
		}
		if m.write != nil && !slices.Contains(modelOmitted, name) {
			written = append(written, field{f.Offset, m})
		}
	}
	m := &modelType{write: func(k *modelCoder, p unsafe.Pointer) {
		for _, f := range written {
			f.write(k, unsafe.Add(p, f.at))
		}
	}}
	if len(owned) > 0 {
		m.own = func(p unsafe.Pointer) {
			for _, f := range owned {
				f.own(unsafe.Add(p, f.at))
			}
		}
	}
	return m
}

func modelSlice(t reflect.Type, value func(unsafe.Pointer) reflect.Value) *modelType {
	e := modelTypeOf(t.Elem())
	return &modelType{
		own: func(p unsafe.Pointer) {
			v := value(p)
			if v.IsNil() {
				return
			}
			c := reflect.MakeSlice(t, v.Len(), v.Len())
			reflect.Copy(c, v)
			for i := 0; e.own != nil && i < c.Len(); i++ {
				e.own(c.Index(i).Addr().UnsafePointer())
			}
			v.Set(c)
		},
		write: func(k *modelCoder, p unsafe.Pointer) {
			v := value(p)
			for i := range v.Len() {
				at := v.Index(i).Addr().UnsafePointer()
				if t.Elem().Name() == "stamp" && k.old(v.Index(i)) {
					continue // so old that it no longer proves anything
				}
				k.flag(true)
				e.write(k, at)
			}
			k.flag(false)
		},
	}
}

func modelMap(t reflect.Type, value func(unsafe.Pointer) reflect.Value) *modelType {
	key, e := modelTypeOf(t.Key()), modelTypeOf(t.Elem())
	entry := func(of reflect.Value) reflect.Value { // makes an entry addressable
		c := reflect.New(of.Type())
		c.Elem().Set(of)
		return c
	}
	return &modelType{
		own: func(p unsafe.Pointer) {
			v := value(p)
			if v.IsNil() {
				return
			}
			c := reflect.MakeMapWithSize(t, v.Len())
			for i := v.MapRange(); i.Next(); {
				x := entry(i.Value())
				if e.own != nil {
					e.own(x.UnsafePointer())
				}
				c.SetMapIndex(i.Key(), x.Elem())
			}
			v.Set(c)
		},
		write: func(k *modelCoder, p unsafe.Pointer) {
			v := value(p)
			k.number(int64(v.Len()))
			k.sorted(func(next func()) {
				for i := v.MapRange(); i.Next(); next() {
					key.write(k, entry(i.Key()).UnsafePointer())
					e.write(k, entry(i.Value()).UnsafePointer())
				}
			})
		},
	}
}

func modelPointer(t reflect.Type, value func(unsafe.Pointer) reflect.Value) *modelType {
	e := modelTypeOf(t.Elem())
	return &modelType{
		own: func(p unsafe.Pointer) {
			v := value(p)
			if v.IsNil() {
				return
			}
			c := reflect.New(t.Elem())
			c.Elem().Set(v.Elem())
			if e.own != nil {
				e.own(c.UnsafePointer())
			}
			v.Set(c)
		},
		write: func(k *modelCoder, p unsafe.Pointer) {
			at := *(*unsafe.Pointer)(p)
			if k.flag(at != nil); at != nil {
				e.write(k, at)
			}
		},
	}
}

// modelCoder encodes a state. States get the same code if they differ only in names, in times
// that are long ago, in the order of the logs, or in how far two ballots are apart.
type modelCoder struct {
	out  []byte
	now  clock.Mono
	ids  map[lease.Session]byte // of the present log
	seqs map[modelSeq]byte      // of the present log
	who  string                 // the process whose lease is written

	snapshots bool
	ballots   []int64 // ascending
	codes     []byte  // the code of each ballot
	parts     [][]byte
}

// modelSeq identifies a record by its sender and the sender's number of it.
type modelSeq struct {
	process string
	n       uint64
}

func (k *modelCoder) seq(process string, n uint64) {
	s := modelSeq{process, n}
	code, ok := k.seqs[s]
	if !ok {
		code = byte(len(k.seqs) + 1)
		k.seqs[s] = code
	}
	k.out = append(k.out, code)
}

// old reports whether a stamp is so old that its age no longer matters.
func (k *modelCoder) old(stamp reflect.Value) bool {
	at := clock.Mono(stamp.FieldByName("at").FieldByName("Mono").Int())
	return k.now.Sub(at) >= 2*modelTick
}

func (k *modelCoder) number(n int64) { k.out = binary.AppendVarint(k.out, n) }

func (k *modelCoder) flag(b bool) {
	n := byte(0)
	if b {
		n = 1
	}
	k.out = append(k.out, n)
}

// age writes how many ticks ago or ahead a time is. Two ticks ago counts like any longer age.
func (k *modelCoder) age(at clock.Mono) {
	n := byte(100)
	switch d := k.now.Sub(at); {
	case at == 0:
	case at == clock.Never:
		n = 101
	case d >= 0:
		n = byte(min(2, d/modelTick))
	default:
		n = 50 + byte(min(4, (modelTick-1-d)/modelTick))
	}
	k.out = append(k.out, n)
}

func (k *modelCoder) id(s lease.Session) {
	n, ok := k.ids[s]
	if !ok {
		n = byte(len(k.ids) + 1)
		k.ids[s] = n
	}
	k.out = append(k.out, n)
	if s.Process != "" {
		k.out = append(k.out, s.Process[0])
	}
}

// rank gives each ballot of a state a code. It depends only on their order, and on the distance
// of each to the one before, up to two.
func (k *modelCoder) rank() {
	slices.Sort(k.ballots)
	k.ballots = slices.Compact(k.ballots)
	k.codes = k.codes[:0]
	code := byte(0)
	for i, b := range k.ballots {
		if i > 0 {
			code += byte(min(2, b-k.ballots[i-1]))
		}
		k.codes = append(k.codes, code)
	}
}

func (k *modelCoder) ballot(b int64) {
	i, found := slices.BinarySearch(k.ballots, b)
	if !found {
		panic("a ballot that rank did not see")
	}
	k.out = append(k.out, k.codes[i])
}

// sorted writes parts in an order that does not depend on the order in which each produces them.
// each calls next after every part.
func (k *modelCoder) sorted(each func(next func())) {
	start := len(k.out)
	from, first := start, len(k.parts)
	each(func() {
		k.parts = append(k.parts, bytes.Clone(k.out[from:]))
		from = len(k.out)
	})
	parts := k.parts[first:]
	if len(parts) > 1 {
		slices.SortFunc(parts, bytes.Compare)
		k.out = k.out[:start]
		for _, p := range parts {
			k.out = append(k.out, p...)
		}
	}
	k.parts = k.parts[:first]
}

func (k *modelCoder) record(r *lease.Record) {
	if r == nil {
		k.flag(false)
		return
	}
	k.out = append(k.out, r.Kind[0], r.Kind[len(r.Kind)-1])
	k.id(r.Session)
	k.ballot(r.Ballot)
	k.number(r.Read)
	k.seq(r.Session.Process, r.Seq)
	k.number(int64(r.Longest))
	k.flag(r.Fresh)
	k.number(int64(len(r.Roles)))
	for _, g := range r.Ended {
		k.number(g.Token)
	}
	if s := r.State; s != nil {
		for _, h := range s.Holders {
			k.id(h.Session)
			k.number(h.Last)
		}
		for _, g := range s.Grants {
			k.number(g.Token)
		}
	}
}
