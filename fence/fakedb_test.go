package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"strings"
	"sync"
)

// fakeDB is a table neli_fence in memory. It knows only the statements of this package. The module
// lab/integration tests on real servers what locks and isolation levels do to them.
type fakeDB struct {
	mu     sync.Mutex
	tokens map[string]int64
	fails  error // what each statement returns
	unread error // what a query for a key's token returns; nil: the token
	later  int64 // if not 0, another transaction commits this token just before such a query
	column int   // if not 0, keys are cut to this length, as servers without strict mode do
}

func (f *fakeDB) open() *sql.DB { return sql.OpenDB(f) }

func (f *fakeDB) Connect(context.Context) (driver.Conn, error) { return fakeConn{f}, nil }
func (f *fakeDB) Driver() driver.Driver                        { return nil }

type fakeConn struct{ *fakeDB }

func (fakeConn) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }
func (fakeConn) Close() error                        { return nil }
func (c fakeConn) Begin() (driver.Tx, error)         { return c, nil }
func (fakeConn) Commit() error                       { return nil }
func (fakeConn) Rollback() error                     { return nil }

func (c fakeConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails != nil {
		return nil, c.fails
	}
	key, token := args[0].Value.(string), args[1].Value.(int64)
	if c.column > 0 {
		key = key[:min(len(key), c.column)]
	}
	stored, known := c.tokens[key]
	switch {
	case !strings.HasPrefix(query, "INSERT INTO neli_fence"):
		panic(query)
	case known && stored > token:
		return driver.RowsAffected(0), nil
	}
	c.tokens[key] = token
	return driver.RowsAffected(1), nil
}

func (c fakeConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails != nil {
		return nil, c.fails
	}
	if !strings.HasPrefix(query, "SELECT token FROM neli_fence") {
		panic(query)
	}
	if c.unread != nil && len(args) == 1 {
		return nil, c.unread
	}
	if c.later != 0 && len(args) == 1 {
		c.tokens[args[0].Value.(string)] = c.later
	}
	stored, known := c.tokens[args[0].Value.(string)]
	if !known || len(args) == 2 && args[1].Value != stored {
		return &fakeRows{}, nil
	}
	return &fakeRows{[]int64{stored}}, nil
}

type fakeRows struct{ tokens []int64 }

func (*fakeRows) Columns() []string { return []string{"token"} }
func (*fakeRows) Close() error      { return nil }
func (r *fakeRows) Next(to []driver.Value) error {
	if len(r.tokens) == 0 {
		return io.EOF
	}
	to[0], r.tokens = r.tokens[0], r.tokens[1:]
	return nil
}
