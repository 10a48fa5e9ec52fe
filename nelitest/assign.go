package nelitest

// assignSticky spreads n partitions evenly over members, given the partitions that each has, so that as
// few as possible move. If several members claim the same partition, the first one owns it. owner has
// the owner of each partition, or -1.
func assignSticky(n int, has [][]int) (target [][]int, owner []int) {
	owner = make([]int, n)
	for p := range owner {
		owner[p] = -1
	}
	counts := make([]int, len(has))
	for m, ps := range has {
		for _, p := range ps {
			if p < n && owner[p] < 0 {
				owner[p] = m
				counts[m]++
			}
		}
	}
	quota := quotas(n, counts)
	target = make([][]int, len(has))
	var free []int
	for p, m := range owner {
		if m >= 0 && len(target[m]) < quota[m] {
			target[m] = append(target[m], p)
		} else {
			free = append(free, p)
		}
	}
	m := 0
	for _, p := range free {
		for len(target[m]) >= quota[m] {
			m++
		}
		target[m] = append(target[m], p)
	}
	return target, owner
}

// quotas divides n evenly. The members with the largest counts get the remainder.
func quotas(n int, counts []int) []int {
	k := len(counts)
	quota := make([]int, k)
	for m := range quota {
		quota[m] = n / k
	}
	for range n % k {
		best := -1
		for m := range quota {
			if quota[m] == n/k && (best < 0 || counts[m] > counts[best]) {
				best = m
			}
		}
		quota[best]++
	}
	return quota
}

// assignRoundRobin gives n partitions to k members in turn.
func assignRoundRobin(n, k int) [][]int {
	target := make([][]int, k)
	for p := range n {
		target[p%k] = append(target[p%k], p)
	}
	return target
}

// assignRange gives each of k members a range of n partitions.
func assignRange(n, k int) [][]int {
	target := make([][]int, k)
	p := 0
	for m := range target {
		size := n / k
		if m < n%k {
			size++
		}
		for range size {
			target[m] = append(target[m], p)
			p++
		}
	}
	return target
}
