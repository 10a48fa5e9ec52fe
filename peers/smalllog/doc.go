/*
Package smalllog is an ordered log in memory. An incarnation has a random id; records are
appended to it, and read from it in one order. The package is pure: it has no clock, no
goroutine and no network, and does not know what the records mean.

It guarantees what a lease on a majority of such logs depends on:

  - an incarnation has an id of 128 random bits. A record that was made for another
    incarnation is refused;
  - offsets count from 0 without a gap, and a record never changes once it has one;
  - a reader gets records in the order of their offsets, each once, from where it began,
    without a gap. A reader that falls behind the oldest record kept is cut off: it gets an
    error, never a later record.

It does not keep records: all are lost when its process ends, and all but the newest are
dropped before that. Two incarnations of one log must never serve at the same time; that is
up to the process that hosts the log.

A Log is not safe for concurrent use.
*/
package smalllog
