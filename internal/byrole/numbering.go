package byrole

// Numbering is how the roles of one of several shards are numbered.
type Numbering struct {
	Index int // of the shard
	Of    int // the number of shards
}

// Role returns the role with this number in the shard: j = p + M·u.
func (n Numbering) Role(local int32) int { return n.Index + n.Of*int(local) }

// Units returns the roles with these numbers in the shard.
func (n Numbering) Units(locals []int32) []int {
	out := make([]int, len(locals))
	for i, local := range locals {
		out[i] = n.Role(local)
	}
	return out
}

// Count returns how many of the first R roles are in the shard.
func (n Numbering) Count(roles int) int32 {
	return int32((max(0, roles-n.Index) + n.Of - 1) / n.Of)
}
