package lease

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/goneli/neli/internal/clock"
)

// plainFold is the fold as the rules state it, in plain maps. The real fold must agree with it.
type plainFold struct {
	token  map[int32]int64
	holder map[int32]Session
	last   map[Session]int64
	t      map[Session]time.Duration
	newer  int64
}

func (f *plainFold) apply(r *Record, o int64) {
	holds := func(x Session) bool {
		for _, y := range f.holder {
			if x == y {
				return true
			}
		}
		return false
	}
	switch r.Kind {
	case Claim:
		var won []int32
		if r.Fresh {
			won = r.Roles
			for _, last := range f.last {
				if r.Read < last {
					won = nil
				}
			}
		} else {
			for _, role := range r.Roles {
				if x, held := f.holder[role]; !held || r.Read >= f.last[x] {
					won = append(won, role)
				}
			}
		}
		if r.Read < f.newer || len(won) == 0 {
			break
		}
		f.newer = none
		if r.Fresh {
			clear(f.token)
			clear(f.holder)
			clear(f.t)
		}
		if !holds(r.Session) || len(won) > 0 && !f.keeps(r.Session, won) {
			f.t[r.Session] = r.T
		}
		for _, role := range won {
			f.token[role], f.holder[role] = o, r.Session
		}
	case Release:
		for _, g := range r.Ended {
			for _, role := range g.Roles {
				if x, held := f.holder[role]; held && x == r.Session && f.token[role] == g.Token {
					delete(f.token, role)
					delete(f.holder, role)
				}
			}
		}
	case Beat, Snapshot, Hello, Ping, Pong:
	}
	if (r.Kind == Beat || r.Kind == Claim) && holds(r.Session) {
		f.last[r.Session] = o
	}
	maps.DeleteFunc(f.last, func(x Session, _ int64) bool { return !holds(x) })
	maps.DeleteFunc(f.t, func(x Session, _ time.Duration) bool { return !holds(x) })
}

// keeps reports whether x holds any role besides these.
func (f *plainFold) keeps(x Session, roles []int32) bool {
	for role, y := range f.holder {
		if x == y && !slices.Contains(roles, role) {
			return true
		}
	}
	return false
}

// same returns how a fold differs from the plain one, nil if it does not.
func (f *plainFold) same(g *fold) error {
	held := 0
	for role := range int32(len(g.tokens)) {
		h := g.holderOf(role)
		x, isHeld := f.holder[role]
		if (h != nil) != isHeld {
			return fmt.Errorf("role %d is held: %v", role, h != nil)
		}
		if h == nil {
			continue
		}
		held++
		if h.Session != x || g.tokens[role] != f.token[role] || h.Last != f.last[x] || h.T != f.t[x] {
			return fmt.Errorf("role %d: %+v, token %d", role, h.Holder, g.tokens[role])
		}
	}
	if held != len(f.holder) || len(g.index) != len(f.last) || g.newer != f.newer {
		return fmt.Errorf("%d roles of %d holders, newer %d", held, len(g.index), g.newer)
	}
	grants := map[int64]int{}
	for _, token := range f.token {
		grants[token]++
	}
	for token, n := range grants {
		if g.grants[token] == nil || g.grants[token].roles != n {
			return fmt.Errorf("grant %d: %+v, want %d roles", token, g.grants[token], n)
		}
	}
	if len(grants) != len(g.grants) {
		return fmt.Errorf("%d grants, want %d", len(g.grants), len(grants))
	}
	return nil
}

// TestFoldFollowsTheRules folds random records, and after each writes the fold out and reads
// it back. The hash, which is updated record by record, must be the hash of the result.
func TestFoldFollowsTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFold()
		want := plainFold{map[int32]int64{}, map[int32]Session{}, map[Session]int64{}, map[Session]time.Duration{}, none}
		var sessions []Session
		for i := range 4 {
			sessions = append(sessions, Session{string(rune('a' + i%2)), uint64(1 + i/2)})
		}
		for o := range int64(rapid.IntRange(1, 60).Draw(t, "records")) {
			if rapid.IntRange(0, 15).Draw(t, "newer") == 0 {
				f.setNewer(o)
				want.newer = o
				continue
			}
			r := &Record{Kind: rapid.SampledFrom([]Kind{Beat, Claim, Claim, Release, Hello}).Draw(t, "kind"),
				Session: rapid.SampledFrom(sessions).Draw(t, "session"), Read: o - 1 - rapid.Int64Range(0, min(4, o)).Draw(t, "behind"), T: time.Second}
			r.T *= time.Duration(r.Session.N)
			switch r.Kind {
			case Claim:
				r.Fresh = rapid.IntRange(0, 5).Draw(t, "fresh") == 0
				if r.Roles = drawRoles(t, 6); len(r.Roles) == 0 {
					r.Roles = []int32{3}
				}
			case Release:
				for role, token := range f.tokens {
					if token != none && rapid.Bool().Draw(t, "ends") {
						r.Ended = append(r.Ended, Grant{Token: token - rapid.Int64Range(0, 1).Draw(t, "older"), Roles: []int32{int32(role)}})
					}
				}
			case Beat, Snapshot, Hello, Ping, Pong:
			}
			before := map[int32]int64{}
			maps.Copy(before, want.token)
			changed, _ := f.apply(r, o, clock.Instant{}, nil)
			want.apply(r, o)
			if err := want.same(&f); err != nil {
				t.Fatalf("after %+v: %v\nwant %+v", r, err, want)
			}
			for role := range int32(6) {
				was, held := before[role]
				if is, holds := want.token[role]; (was != is || held != holds) && !slices.Contains(changed, role) {
					t.Fatalf("role %d has changed, but the fold reports %v", role, changed)
				}
			}
			state := *(&Lease{fold: f}).states()[0]
			state.Hash, state.Newer = f.hash, f.newer
			if g, ok := state.fold(clock.Instant{}); !ok || want.same(&g) != nil {
				t.Fatalf("the fold %+v read back is %+v", state, g)
			}
		}
	})
}
