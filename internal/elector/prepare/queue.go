package prepare

import (
	"cmp"
	"slices"

	"github.com/goneli/neli/internal/clock"
)

// next returns the roles to begin with: those of processes that cannot keep them first, standbys last.
func (p *Preparer) next() []*preparation {
	free := p.set.Most - len(p.calls)
	if free <= 0 {
		return nil
	}
	queue := sorted(p.hot, func(w *preparation) bool { return w.stage == queued })
	slices.SortStableFunc(queue, func(a, b *preparation) int { return cmp.Compare(a.rank(), b.rank()) })
	for len(queue) < free && len(p.queue) > 0 {
		if w := p.pop(&p.queue, queued); w != nil {
			queue = append(queue, w)
		}
	}
	return queue[:min(free, len(queue))]
}

// file puts a preparation that has changed where steps find it. A standby that is ready needs no step.
func (p *Preparer) file(w *preparation) {
	delete(p.hot, w.Place)
	switch {
	case w.from != "" || w.stage == running:
		p.hot[w.Place] = w
	case w.listed:
	case w.stage == queued:
		w.listed, p.queue = true, append(p.queue, w)
	case w.stage == failed:
		i, _ := slices.BinarySearchFunc(p.resting, w.again+1, func(w *preparation, at clock.Mono) int { return cmp.Compare(w.again, at) })
		w.listed, p.resting = true, slices.Insert(p.resting, i, w)
	}
}

// pop takes the first of queue or resting. It returns nil if that has changed since, and files it anew.
func (p *Preparer) pop(list *[]*preparation, is stage) *preparation {
	w := (*list)[0]
	*list, w.listed = (*list)[1:], false
	switch {
	case p.by[w.Place] != w:
		return nil
	case w.from == "" && w.stage == is:
		return w
	}
	p.file(w)
	return nil
}
