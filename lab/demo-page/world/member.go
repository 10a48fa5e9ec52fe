package world

import (
	"context"
	"errors"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// Member is a member as it is. Its link may be cut or slow even while it does not run.
type Member struct {
	Name                                string
	Runs, Suspended, Closing, Cut, Slow bool
	Leads                               map[int]Lead // what it leads by its own clock, by role
	Age                                 *float64     // of its newest V; nil: it has led nothing
	Assigned                            []int        // what the group has assigned to it
	process                             *process
}

// Lead is how long a member leads a role without new evidence.
type Lead struct {
	Token int64
	Left  float64
}

// process is one incarnation of a member.
type process struct {
	*neli.Neli
	terms map[int]neli.Leadership // the newest, by role
	v     time.Time               // the newest V, as Leadership.Remaining shows it; zero: it has led nothing
}

// act does what news says, and tells it, if m is in a state for it.
func (w *World) act(m *Member, news News) error {
	switch p, awake := m.process, m.Runs && !m.Suspended && !m.Closing; {
	case news.What == "start" && !m.Runs:
		if err := w.start(m); err != nil {
			return err
		}
	case news.What == "kill" && m.Runs:
		w.broker.Kill(m.Name)
		*m = Member{Name: m.Name, Cut: m.Cut, Slow: m.Slow}
		go p.Close() //nolint:errcheck // the process is dead: this ends its goroutines
	case news.What == "close" && awake:
		m.Closing = true
		go func() { w.ended(m, p, "closed", p.Close()) }()
	case news.What == "suspend" && awake:
		w.look(m) // V may be newer than when State looked
		m.Suspended = true
		w.broker.Freeze(m.Name)
	case news.What == "wake" && m.Suspended:
		m.Suspended = false
		w.broker.Resume(m.Name)
		w.look(m)
		news.Leads = len(m.Leads) > 0
	case news.What == "cut" && !m.Cut:
		m.Cut = true
		w.broker.CutOff(m.Name, nelitest.LinkAll)
	case news.What == "mend" && m.Cut:
		m.Cut = false
		w.broker.Restore(m.Name, nelitest.LinkAll)
	case news.What == "slow" && !m.Slow:
		m.Slow = true
		w.broker.Delay(m.Name, slow)
		w.broker.SlowReads(m.Name, slow/2)
	case news.What == "fast" && m.Slow:
		m.Slow = false
		w.broker.Delay(m.Name, 0)
		w.broker.SlowReads(m.Name, 0)
	default:
		return nil
	}
	w.tell(news)
	return nil
}

func (w *World) start(m *Member) (err error) {
	p := &process{terms: map[int]neli.Leadership{}}
	c := w.config
	c.Name, c.Provider = m.Name, w.broker.Provider(m.Name)
	if p.Neli, err = neli.New(c, func(e neli.Event) { w.told(m, p, e) }); err != nil {
		return err
	}
	m.process, m.Runs = p, true
	go func() {
		err := p.Lead(context.Background(), func(ctx context.Context, l neli.Leadership) error {
			w.mu.Lock()
			p.terms[l.Role] = l
			w.mu.Unlock()
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, neli.ErrClosed) {
			w.ended(m, p, "failed", err)
		}
	}()
	return nil
}

// ended notes that a process has ended by itself, unless it was killed before.
func (w *World) ended(m *Member, p *process, what string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.process != p {
		return
	}
	*m = Member{Name: m.Name, Cut: m.Cut, Slow: m.Slow}
	news := News{What: what, Member: m.Name}
	if err != nil {
		news.Why = err.Error()
	}
	w.tell(news)
}

// told is the barrier of a process.
func (w *World) told(m *Member, p *process, e neli.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var what string
	var c neli.Change
	switch e := e.(type) {
	case neli.LeaderAcquired:
		what, c = "acquired", e.Change
	case neli.LeaderRevoked:
		what, c = "revoked", e.Change
	case neli.LeaderFenced:
		what, c = "fenced", e.Change
	}
	for _, t := range c.Terms {
		if m.process == p { // a killed process is told nothing
			w.tell(News{What: what, Member: m.Name, Roles: t.Roles, Token: t.Token, Why: c.Reason.String()})
		}
	}
}

// look notes what a member leads, and its newest V. While it is suspended it does nothing as a leader, and V stays.
func (w *World) look(m *Member) {
	m.Leads, m.Assigned = map[int]Lead{}, w.broker.Assigned(m.Name)
	p, holds := m.process, w.config.HeartbeatTimeout
	if w.config.Mode == neli.Exclusive {
		holds -= holds / 10
	}
	for role := range w.config.Roles {
		if !m.Runs || m.Suspended || !p.IsLeaderOf(role) {
			continue
		}
		token, _ := p.Token(role)
		left := p.terms[role].Remaining()
		m.Leads[role] = Lead{token, left.Seconds()}
		if v := time.Now().Add(left - holds); left > 0 && v.After(p.v) {
			p.v = v
		}
	}
	if m.Runs && !p.v.IsZero() {
		age := time.Since(p.v).Seconds()
		m.Age = &age
	}
}
