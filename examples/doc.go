// Package examples has programs that use package neli, each in a directory of its own and for one purpose.
// Copy what you need.
//
//	service       HTTP API with its keys on several processes, a job on one, status page, metrics, orderly end
//	basic         one process of several runs a job: Background
//	barrier       full control over what happens when leadership comes and goes: Pulse
//	lead          a function with a context, and a fencing token that guards a database row: Lead
//	shards        shows who serves each request while 64 prepared shards move among three processes: package shards
//	static        one static binary, without cgo: the Kafka client is franz-go
//	nonexclusive  at least one leader at all times, by two disjoint groups
//	fenced-sql    PostgreSQL refuses a leader that was suspended during its work
//	fenced-kafka  the same with Kafka transactions
//	cron          a schedule of robfig/cron that runs on one process
//	asynq         asynq's Scheduler, on one process; needs a Redis
//	runner        jobs that are requested over HTTP, and run on one process
//
// Directory migration is a module of its own. It has programs before and after their move from other
// systems to package neli. All other programs need a Kafka at -bootstrap (localhost:9092). Start
// each in two or three terminals, and end the leader with Ctrl-C or kill -9. Or suspend it (kill -STOP),
// and wake it (kill -CONT) when another one leads: it then does nothing.
package examples
