// Package fence keeps a former leader's late writes out of what its successor writes to:
// SQL tables, and Kafka topics.
//
// A leader that asks Leadership.Valid and then writes can be suspended between the two, for
// any time. When it wakes, the write goes out although another process leads. Only what
// receives the write can refuse it. This package has what the receiver needs for that:
//
//	what is written to             what to take
//	PostgreSQL                     Postgres, PostgresHold
//	MariaDB, MySQL                 MySQL, MySQLHold
//	Kafka, by transactions         Transactions, with package fence/confluent or module franz
//	Kafka, append-only topics      Stamp at the writer, Filter at each reader
//
// # Tokens
//
// All but Transactions compare tokens. A token belongs to one role of one group: compare
// tokens of one role only, and give each role a key of its own. Tokens go back if the
// leader topic is recreated or moved; Config.TokenBase repairs that before the first write.
//
// # What it does not do
//
// It is for exclusive mode. In non-exclusive mode there are no tokens, and two leaders may
// both be right: they would refuse each other.
//
// No function here tells which process leads. None stops a former leader's acts elsewhere: a
// file, an e-mail, a request to a service that knows no tokens. A fence reports that a write
// was refused, not that the writer has lost its role.
//
// This package imports no Kafka client and no database driver.
package fence
