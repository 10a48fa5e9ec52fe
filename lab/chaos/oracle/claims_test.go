package oracle

import (
	"testing"

	"github.com/goneli/neli/lab/chaos/history"
)

func claim(member string, offset int64) history.Claim {
	return history.Claim{Member: member, Offset: offset}
}

func election(cs ...history.Claim) history.ElectionLog {
	return history.ElectionLog{Claims: cs, From: []int64{0}}
}

func TestClaims(t *testing.T) {
	lives := []history.Life{life("a.1", run(ex, 3, 0, 10))}
	deleted := election(claim("b.1", 17))
	deleted.From[0] = 4
	elsewhere := claim("a.1", 3)
	elsewhere.Role = 1
	for _, c := range []struct {
		name string
		log  history.ElectionLog
		want string
	}{
		{"its own", election(claim("a.1", 3), claim("b.1", 17)), ""},
		{"of another", election(claim("b.1", 3)), "a claim of b.1"},
		{"of another incarnation", election(claim("a.2", 3)), "a claim of a.2"},
		{"of another role", election(elsewhere), "no such valid claim"},
		{"none", election(), "no such valid claim"},
		{"deleted", deleted, ""},
	} {
		t.Run(c.name, func(t *testing.T) { rejects(t, c.want, ClaimFaults(c.log, Terms(lives, 0))) })
	}
}
