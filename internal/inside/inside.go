// Package inside has the functions of a *neli.Neli that nelihttp, neligrpc, shards and the command neli use.
// Other programs do not need them, so they are no methods of a Neli. Package neli sets them when it is
// initialised.
package inside

import "context"

// CallMembers asks all members of the group of n, a *neli.Neli, to announce themselves, and returns nil
// once the call is in the topic, where they read it. In a group of up to 20, Members then knows all of
// them within a second. A larger group spreads its answers, 20 a second: of a hundred members, half are
// known after two or three seconds. Members of a version that does not know the call announce themselves
// as usual.
//
// It is for programs that have just started. The call needs WRITE on the topic, also from an observer;
// without it n goes on watching, and the call fails after three seconds. If no broker can be reached the
// call waits: give ctx a deadline. Do not call regularly: all members read each answer.
//
// Errors: neli.ErrNoAnswer, if the log refuses the call; neli.ErrClosed, or the error that ended n; the
// cause of ctx, with the log's last error. In non-exclusive mode it is always an error: nobody can be called.
var CallMembers func(ctx context.Context, n any) error

// Partitions returns M, the number of partitions of the leader topic of n, a *neli.Neli, or 0 until n has
// learnt it from a broker.
var Partitions func(n any) int

// Warn logs a warning of n, a *neli.Neli, through n's queue: Config.Logger promises that nothing waits for its handler.
var Warn func(n any, text string, args ...any)

// Roles returns R, the number of roles of n, a *neli.Neli, at present.
var Roles func(n any) int
