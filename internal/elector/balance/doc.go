// Package balance says when to hand over roles that this process could keep, and follows what becomes of them.
package balance
