/*
Package shards runs the shards of a service, each on one process, and lets a shard arrive prepared: with its
files open, its state restored, its cache warm.

	s, err := shards.New(64, shards.Functions{Prepare: load, Serve: serve, Abandon: drop})
	n, err := neli.New(neli.Config{LeaderGroupID: "carts", Roles: 64, Prepare: s.Prepare})
	err = errors.Join(s.Run(ctx, n), n.Close())

A shard is a role of package neli, from 0 on; neli.Slot maps keys to shards. Each process has a state machine for each
shard:

	      offered, or led                ready           led           term ends           returned
	Idle ────────────────▶ Preparing ──────────▶ Prepared ───▶ Serving ──────────▶ Draining ───────▶ Idle
	 ▲                     Prepare │                 │         Serve               Serve     ▲
	 └─────────────────────────────┘                 └─────────────────────────────▶ Abandon ┘
	                        failed                             not led

# What it promises

In one process the calls for one shard come one after another: its Prepare, Serve and Abandon never overlap, and what
one call writes the next may read without a lock. Serve comes only after a Prepare that returned nil. Each Prepare
that returned nil is followed by one Serve or one Abandon, and one that failed by neither. The next Serve of a shard
waits until the former has returned, even if that ignores its context. After Run no function is at work or called.

Among processes, at most one context of Serve of a shard has no error at any instant: it asks the clock, as that of
neli.Lead does. A Serve that goes on after ErrLost, or for longer than Config.DrainTimeout after another cause, may
overlap with its successor's. So may a write that has begun: give the token to what is written to (package fence).

# What it does not promise

Prepare runs while another process serves the shard and changes its data: Serve must catch up. And a shard may be led
unprepared, as neli.Config.Prepare says: after a crash, say. Then Prepare is called by the process that leads the
shard, and nobody serves it until Prepare has returned nil.
*/
package shards
