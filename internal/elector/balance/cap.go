package balance

// Overfull reports, once each time, that a process has begun to hold more roles than it wants; most 0 is no limit.
func (m *Mover) Overfull(held, most int) bool {
	over := most > 0 && held > most
	begins := over && !m.overfull
	m.overfull = over
	return begins
}

// Full reports whether a process holds as many roles as it wants.
func Full(held, most int) bool { return most > 0 && held >= most }
