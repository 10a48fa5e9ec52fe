package fenced

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// schedule is one order of the statements of two terms on a real server. At each point one of the sessions that are free
// continues; choices says which. So a schedule can be repeated.
type schedule struct {
	t        *testing.T
	db       *sql.DB
	sessions [2]*session
	claimed  bool  // the new term's claim has committed
	saw      int64 // rows of the former term that the new term's work has seen; −1 until that work has committed
	taken    []int
	widths   []int // how many sessions each choice had
	waited   int   // how often a session waited for a lock
	again    int   // transactions that were run again
	stale    int
	faults   []string
	story    []string
}

// patience is how long a statement that waits for nothing may take.
const patience = 20 * time.Second

func (v *variant) try(t *testing.T, d *dialect, db *sql.DB, level sql.IsolationLevel, row bool, choices []int) *schedule {
	ctx := t.Context()
	for _, q := range []string{"DELETE FROM neli_fence", "DELETE FROM work", "UPDATE counter SET v = 0"} {
		_, err := db.ExecContext(ctx, q)
		require.NoError(t, err)
	}
	if row {
		_, err := db.ExecContext(ctx, "INSERT INTO neli_fence VALUES ('"+sqlKey+"', 0)")
		require.NoError(t, err)
	}
	s := &schedule{t: t, db: db, saw: -1}
	for i := range s.sessions {
		conn, err := db.Conn(ctx)
		require.NoError(t, err)
		defer conn.Close()
		one := &session{d: d, level: level, conn: conn, term: int64(i + 1), answer: make(chan error, 1)}
		require.NoError(t, conn.QueryRowContext(ctx, d.id).Scan(&one.id))
		one.program = v.former
		if i == 1 {
			one.program = v.later
		}
		s.sessions[i] = one
	}
	s.run(choices)
	s.judge()
	return s
}

func (s *schedule) run(choices []int) {
	for {
		var free []*session
		for _, one := range s.sessions {
			s.settle(one)
		}
		for _, one := range s.sessions {
			if !one.done && !one.busy {
				free = append(free, one)
			}
		}
		if len(free) == 0 {
			if s.sessions[0].done && s.sessions[1].done {
				return
			}
			continue // a session will be told of a deadlock, or has just got its lock
		}
		choice := 0
		if n := len(s.taken); n < len(choices) && choices[n] < len(free) {
			choice = choices[n]
		}
		s.taken, s.widths = append(s.taken, choice), append(s.widths, len(free))
		one := free[choice]
		one.busy = true
		do := one.program[one.at].steps[one.in].do
		go func() { one.answer <- do(s.t.Context(), one) }()
		if s.settle(one); one.busy {
			s.waited++
		}
	}
}

// settle returns when a session has answered or waits for a lock.
func (s *schedule) settle(one *session) {
	deadline := time.Now().Add(patience)
	for one.busy {
		timer := time.NewTimer(3 * time.Millisecond)
		select {
		case err := <-one.answer:
			one.busy = false
			s.finish(one, err)
		case <-timer.C:
			// A commit waits for no lock, and must answer before another session continues: the server releases locks
			// before it answers, and the answers must show the order of commits.
			if one.program[one.at].steps[one.in].name != commit.name && one.d.waits(s.t, s.db, one.id) {
				select { // it may have answered while that was asked
				case err := <-one.answer:
					one.busy = false
					s.finish(one, err)
				default:
				}
				return
			}
			require.True(s.t, time.Now().Before(deadline), "stuck: %v", s.story)
		}
		timer.Stop()
	}
}

// finish notes how a step ended.
func (s *schedule) finish(one *session, err error) {
	now := one.program[one.at]
	s.story = append(s.story, fmt.Sprintf("%d %s: %v", one.term, now.steps[one.in].name, err))
	switch {
	case errors.Is(err, errStops):
		_ = one.tx.Rollback()
		one.done = true
		s.stale++
	case err != nil && one.d.again(err):
		_ = one.tx.Rollback()
		s.again++
		one.in = 0
		if one.tries++; one.tries > 3 {
			one.done = true
		}
	case err != nil:
		s.t.Fatalf("%v", s.story)
	default:
		if one.in++; one.in == len(now.steps) {
			s.committed(one, now)
		}
	}
}

func (s *schedule) committed(one *session, of txn) {
	wrote := len(of.steps) > 2
	switch {
	case one.term == 1 && s.claimed && wrote:
		s.faults = append(s.faults, "the former term committed after the new one's claim")
	case one.term == 2 && wrote:
		s.saw = one.former
	}
	s.claimed = s.claimed || one.term == 2 && of.claim
	one.commits++
	one.in, one.tries = 0, 0
	one.at++
	one.done = one.at == len(one.program)
}

// judge compares what is in the tables with what the sessions saw.
func (s *schedule) judge() {
	var rows, counter, former int64
	for query, to := range map[string]*int64{"SELECT count(*) FROM work": &rows, "SELECT v FROM counter": &counter, "SELECT count(*) FROM work WHERE term = 1": &former} {
		require.NoError(s.t, s.db.QueryRowContext(context.Background(), query).Scan(to))
	}
	if rows != counter {
		s.faults = append(s.faults, fmt.Sprintf("an update is lost: the counter is %d after %d writes", counter, rows))
	}
	if s.saw >= 0 && s.saw != former {
		s.faults = append(s.faults, fmt.Sprintf("the new term acted on %d rows of the former one, there are %d", s.saw, former))
	}
}

// next returns the choices of the next schedule, depth first; nil: this was the last one.
func (s *schedule) next() []int {
	for i := len(s.taken) - 1; i >= 0; i-- {
		if s.taken[i]+1 < s.widths[i] {
			return append(s.taken[:i:i], s.taken[i]+1)
		}
	}
	return nil
}

func (s *schedule) String() string { return strings.Join(s.story, "\n") }
