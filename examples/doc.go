// Package examples holds programs that use package neli, each in a directory of
// its own and each with a purpose; copy what you need.
//
//	basic         one process of several runs a job: Background
//	barrier       full control of what happens when leadership comes and goes: Pulse
//	lead          a function with a context, and a fencing token that guards a database row: Lead
//	shards        many roles spread over several processes, keys mapped to roles: Slot
//	static        one static binary, without cgo: the Kafka client is franz-go
//	nonexclusive  at least one leader at all times, by two disjoint groups
//	fenced-sql    a leader that is suspended in its work, and refused by PostgreSQL
//	fenced-kafka  the same with Kafka transactions
//	cron          a schedule of robfig/cron that runs on one process
//	asynq         asynq's Scheduler, on one process; needs a Redis
//	runner        jobs that are asked for over HTTP, and run on one process
//	demo          a show: needs no Kafka, kills and suspends processes
//
// Directory migration is a module of its own: programs before and after they moved here from other
// systems. All but those and demo want a Kafka at -bootstrap (localhost:9092). Start each in two or
// three terminals and end the leader with Ctrl-C or kill -9, or suspend it (kill -STOP)
// and wake it (kill -CONT) when another one leads: it does nothing.
package examples
