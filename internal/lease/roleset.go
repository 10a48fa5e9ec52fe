package lease

// roleSet is a set of roles, with a bit for each. With a map, a Claim of ten thousand roles would
// cost ten thousand insertions.
type roleSet []uint64

func (s roleSet) has(role int32) bool {
	i := int(role) / 64
	return i < len(s) && s[i]&(1<<(role%64)) != 0
}

func (s *roleSet) add(role int32) {
	i := int(role) / 64
	if more := i + 1 - len(*s); more > 0 {
		*s = append(*s, make([]uint64, more)...)
	}
	(*s)[i] |= 1 << (role % 64)
}

func (s roleSet) remove(role int32) {
	if i := int(role) / 64; i < len(s) {
		s[i] &^= 1 << (role % 64)
	}
}
