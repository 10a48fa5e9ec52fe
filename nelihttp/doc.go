/*
Package nelihttp answers over HTTP what a process knows of who leads: status codes
for load balancers, JSON for programs, a stream of changes, and one page for people.

	mux.Handle("/neli/", http.StripPrefix("/neli", nelihttp.Handler(n)))

	GET HEAD OPTIONS  /leader           200 if this process leads a role at this instant, else 503; JSON
	                  /leader/{role}    the same for one role
	                  /holder/{role}    200 and the holder, or 404; ?redirect=1 with WithURL: 307
	                  /standings        who holds what; ?q= a role, or a part of a name
	                  /members          the processes of the group
	                  /stats            Neli.Stats
	                  /events           changes as server-sent events
	                  /healthz          200 while this process is able to take part, else 503 and why
	                  /                 the page
	POST              /stepdown         Neli.StepDown            only with WithControl
	                  /transfer         Neli.Transfer: role, to  only with WithControl

OPTIONS and HEAD have the status of GET and no body.

# What it promises

/leader is [neli.Neli.IsLeader] at the instant of the request, /leader/{role}
[neli.Neli.IsLeaderOf]: never a flag that was set some time ago. Of two members asked at
one and the same instant at most one says 200 for a role (exclusive mode).

# What it does not promise

By the time that an answer arrives it is about the past, so a request that is sent to the
leader by it may arrive at a process that leads no more: that one checks IsLeaderOf,
and what it changes checks the fencing token. All else (/holder, /standings, /members,
/events, the page) is what this process has read of the log, with its age; a process that
is cut off tells that everything is vacant after a while.

Leadership is no readiness. A readiness probe on /leader makes a rolling update wait
for ever for followers that never become ready. Use it as the health check of a
load balancer that is to send everything to the leader, or let the leader label itself for
a Service's selector. As a liveness or readiness probe take /healthz.

# Bounds

Roles with the same holder and token are one Standing, however many, and its roles are
written as ranges; the page and /leader write 100 ranges at most. Requests for the page and
/standings share one call of [neli.Neli.Standings] in 100 ms, and in twenty times as long as
the call takes. The page's time line keeps ten minutes, in some hundred kilobytes at most. Of more than 500 Standings
/standings, /events and the page give the numbers, and what is searched for. At most 256 streams are served at
a time. A stream has no queue: a client that is slow misses what was in between, and one
that takes more than ten seconds for a write is cut off.

# Who may read and write

There is no authentication here: names of members, tokens and counters are told to whoever
can send a request. Put the handler on an internal port, or wrap it. What changes
leadership is off unless [WithControl] is given. It is then refused to pages of other
origins, and for hosts other than IP addresses, localhost and those of [WithHosts].
*/
package nelihttp
