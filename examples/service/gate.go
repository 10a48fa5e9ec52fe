package main

import "sync"

// gate lets requests in while it is open. It is closed at first.
type gate struct {
	mu     sync.Mutex
	opened bool
	inside sync.WaitGroup // a WaitGroup, since time passes in a synctest bubble while something waits for it
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = true
}

// close returns when all requests have left.
func (g *gate) close() {
	g.mu.Lock()
	g.opened = false
	g.mu.Unlock()
	g.inside.Wait()
}

// enter reports whether the gate is open. Then the caller must leave.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened {
		g.inside.Add(1)
	}
	return g.opened
}

func (g *gate) leave() { g.inside.Done() }
