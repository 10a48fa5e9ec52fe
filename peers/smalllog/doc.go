/*
Package smalllog is an ordered log in memory: an incarnation with a random id, to which
records are appended and from which they are read in one order. It is pure: no clock, no
goroutine, no network, and no knowledge of what the records mean.

What it guarantees, and what a lease on a majority of such logs rests on:

  - an incarnation has an id of 128 random bits. A record that was made for another
    incarnation is refused;
  - offsets count from 0 without a gap, and no record changes once it has one;
  - a reader gets records in the order of their offsets, each once, from where it began,
    without a gap. One that falls behind the oldest record kept is cut off: it gets an
    error, never a later record.

What it does not: it forgets all it has when its process ends, and all but its newest
records while that lives. Two incarnations of one log must never serve at the same time;
whoever hosts a log sees to that.

A Log is not safe for concurrent use.
*/
package smalllog
