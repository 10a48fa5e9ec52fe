package request

import "errors"

// ErrNoAnswer is the error of Transfer to a member that does not answer, and of Ask.
var ErrNoAnswer = errors.New("neli: the member does not answer")

// ErrDenied is the error of a log that accepts no records from this process.
var ErrDenied = errors.New("this process may not write")
