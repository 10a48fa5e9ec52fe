/*
Package shards runs the shards of a service, each on one process, and lets a shard arrive prepared: with its
files open, its state restored, its cache warm.

	s, err := shards.New(64, shards.Functions{Prepare: load, Serve: serve, Abandon: drop})
	n, err := neli.New(neli.Config{LeaderGroupID: "carts", Roles: 64, Prepare: s.Prepare})
	context.AfterFunc(ctx, func() { n.Close() }) // each shard's successor prepares before Serve ends
	err = s.Run(context.Background(), n)         // neli.ErrClosed after that
	err = errors.Join(err, n.Close())            // returns when all has ended

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

Among processes, at any instant at most one Serve of a shard has a context whose Err is nil: Err asks the clock, as
with neli.Lead. A Serve that goes on after ErrLost, or for longer than neli.Config.DrainTimeout after another cause,
may overlap with its successor's. So may a write that has begun: give the token to what is written to (package fence).

# What it does not promise

Prepare may run while another process serves the shard and changes its data: Serve must catch up. And a shard may be
led unprepared, for example after a crash; neli.Config.Prepare lists when. Then the process that leads the shard calls
Prepare, and nobody serves the shard until Prepare has returned nil.
*/
package shards
