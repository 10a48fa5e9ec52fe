/*
Package nelihttp serves over HTTP what a process knows about who leads: status codes for load
balancers, JSON for programs, a stream of changes, and one page for people.

	mux.Handle("/neli/", http.StripPrefix("/neli", nelihttp.Handler(n)))

	GET HEAD OPTIONS  /leader           200 if this process leads a role at this instant, else 503; JSON
	                  /leader/{role}    the same for one role
	                  /holder/{role}    200 and the holder, or 404; ?redirect=1 with WithURL: 307
	                  /standings        who holds which roles; ?q= a role, or a part of a name
	                  /members          the processes of the group
	                  /stats            Neli.Stats
	                  /events           changes as server-sent events
	                  /healthz          200 while this process is able to take part, else 503 and why
	                  /                 the page
	POST              /stepdown         Neli.StepDown            only with WithControl
	                  /transfer         Neli.Transfer: role, to  only with WithControl

OPTIONS and HEAD have the same status as GET, and no body.

# What it promises

/leader calls [neli.Neli.IsLeader] at the instant of the request, and /leader/{role} calls
[neli.Neli.Token] or IsLeaderOf. Neither route answers with a flag that was set some time ago. If two
members are asked about a role at the same instant, at most one answers 200 (exclusive mode).

# What it does not promise

An answer is about the past when it arrives. A request that is routed by it may reach a process that
no longer leads: that process must check IsLeaderOf, and the resource that it changes must check the
fencing token. All other routes (/holder, /standings, /members, /events, the page) show what this
process has read from the log, with its age. A process that is cut off reports after a while that
everything is vacant (on the page: unknown).

Leadership is not readiness. With a readiness probe on /leader a rolling update waits forever for
followers that never become ready. Use /leader as the health check of a load balancer that sends
everything to the leader, or let the leader label itself for a Service's selector. Use /healthz as a
readiness probe, and /stats as a liveness probe: /healthz fails while no broker is reached, and a
restart does not help then.

# Requests for the leader

[Forward] is for the application's own routes. It serves the requests for roles that this process leads, and sends the
others to their leaders. With a [Gate] the process keeps a role until its requests in progress are answered.

# Bounds

Roles of a partition with the same holder and token are one Standing. Its roles are written as
ranges; the page and /leader write at most 100 ranges. Requests for the page and /standings share one
call of [neli.Neli.Standings] per 100 ms, or per twenty times the duration of the call if that is
longer. The page's time line shows the last ten minutes since the call of Handler, in a few hundred kilobytes
at most. For that the handler looks at the Standings at each change and heartbeat, less often with very many roles
or short heartbeats. With more than 500 Standings, /events gives only numbers, and /standings and the page also results
of a search. At most 256 streams are served at a time. A stream has no queue: a slow client misses intermediate
states, and one that takes more than ten seconds to accept a write is cut off.

# Who may read and write

There is no authentication: anyone who can send a request can read the members' names, tokens and
counters. Put the handler on an internal port, or wrap it. Requests that change leadership need
[WithControl]. Even then they are refused if they come from a page of another origin, or if the Host
header is not an IP address, localhost or a name given to [WithHosts].
*/
package nelihttp
