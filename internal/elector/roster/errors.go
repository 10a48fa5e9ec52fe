package roster

import "errors"

// ErrNoMember is the error of Transfer to a member that is unknown, or would not take the role.
var ErrNoMember = errors.New("neli: no such member")
