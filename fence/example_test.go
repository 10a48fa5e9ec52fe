package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/goneli/neli/fence"
)

// pay is one transaction of a term. It begins with the fence.
func pay(ctx context.Context, db *sql.DB, token int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fence.Postgres(ctx, tx, fence.TransactionalID("invoicing", 0), token); err != nil {
		return err
	}
	// … UPDATE invoice SET paid = true …
	return tx.Commit()
}

func ExamplePostgres() {
	db := (&fakeDB{tokens: map[string]int64{}}).open() // in production: sql.Open("pgx", …), and fence.Schema
	defer db.Close()
	ctx := context.Background()
	fmt.Println("the former leader, token 41:", pay(ctx, db, 41))
	fmt.Println("the present one, token 57:", pay(ctx, db, 57))
	err := pay(ctx, db, 41) // it was suspended, and wakes
	fmt.Println("late:", errors.Is(err, fence.ErrStale))
	// Output:
	// the former leader, token 41: <nil>
	// the present one, token 57: <nil>
	// late: true
}

// inTx runs f in a transaction.
func inTx(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func ExamplePostgresHold() {
	db := (&fakeDB{tokens: map[string]int64{}}).open()
	defer db.Close()
	ctx := context.Background()
	const key, token = "neli/invoicing/0", 57
	// Once, when the term begins:
	err := inTx(ctx, db, func(tx *sql.Tx) error { return fence.Postgres(ctx, tx, key, token) })
	fmt.Println("claim:", err)
	// Then in each transaction, if Leadership.Valid is true. Many such transactions may run at the same time:
	err = inTx(ctx, db, func(tx *sql.Tx) error { return fence.PostgresHold(ctx, tx, key, token) })
	fmt.Println("hold:", err)
	// Output:
	// claim: <nil>
	// hold: <nil>
}

func ExampleMySQL() {
	db := (&fakeDB{tokens: map[string]int64{"neli/invoicing/0": 57}}).open() // in production: sql.Open("mysql", …), and fence.MySQLSchema
	defer db.Close()
	ctx := context.Background()
	err := inTx(ctx, db, func(tx *sql.Tx) error { return fence.MySQL(ctx, tx, "neli/invoicing/0", 41) })
	fmt.Println(err)
	// Output: fence: a later term has taken over: key "neli/invoicing/0": its token is 57, this one's is 41
}

func ExampleMySQLHold() {
	db := (&fakeDB{tokens: map[string]int64{"neli/invoicing/0": 57}}).open()
	defer db.Close()
	ctx := context.Background()
	err := inTx(ctx, db, func(tx *sql.Tx) error { return fence.MySQLHold(ctx, tx, "neli/invoicing/0", 57) })
	fmt.Println("hold:", err)
	// Output: hold: <nil>
}

func ExampleTransactionalID() {
	fmt.Println(fence.TransactionalID("invoicing", 3))
	// Output: neli/invoicing/3
}

func ExampleTransactions() {
	d := &desk{}
	// In production: the Leadership that neli.Lead gives to its function, and Open of package
	// fence/confluent or franzfence.
	term, open := &term{d, 3}, d.client
	err := fence.Transactions(context.Background(), term, open, func(ctx context.Context, p *fence.Producer[string]) error {
		// Read the state here, anew each time, so that it includes everything that former leaders wrote.
		return p.Commit(ctx, "invoice 17", "invoice 18")
	})
	fmt.Println(d.committed, err)
	// Output: [invoice 17 invoice 18] <nil>
}

func ExampleProducer_Commit() {
	d := &desk{}
	_ = fence.Transactions(context.Background(), &term{d, 3}, d.client, func(ctx context.Context, p *fence.Producer[string]) error {
		if err := p.Commit(ctx, "invoice 17"); err != nil {
			return err // nobody knows whether the records are committed; Transactions calls again if the term lasts
		}
		fmt.Println("committed:", d.committed)
		return nil
	})
	// Output: committed: [invoice 17]
}

func ExampleStamp() {
	fmt.Printf("%s: %s\n", fence.Header, fence.Stamp(57, 3, "invoicing"))
	// Output: neli-token: 57 3 invoicing
}

func ExampleFilter_Admit() {
	var filter fence.Filter
	for _, header := range []string{"41 0 invoicing", "57 0 invoicing", "41 0 invoicing"} {
		take, err := filter.Admit("invoices", 0, []byte(header))
		fmt.Println(header, take, err)
	}
	// Output:
	// 41 0 invoicing true <nil>
	// 57 0 invoicing true <nil>
	// 41 0 invoicing false <nil>
}

func ExampleFilter_State() {
	var filter fence.Filter
	_, _ = filter.Admit("invoices", 0, fence.Stamp(57, 0, "invoicing"))
	fmt.Println(filter.State("invoices", 0)) // store it together with the offset, atomically
	// Output: [{"t":57,"r":0,"g":"invoicing"}]
}

func ExampleFilter_Restore() {
	var filter fence.Filter // the filter of a reader that restarts at the offset that it had stored
	if err := filter.Restore("invoices", 0, `[{"t":57,"r":0,"g":"invoicing"}]`); err != nil {
		fmt.Println(err)
	}
	take, _ := filter.Admit("invoices", 0, fence.Stamp(41, 0, "invoicing"))
	fmt.Println("takes a late record:", take)
	// Output: takes a late record: false
}
