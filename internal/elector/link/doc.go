// Package link watches which own records are in flight to one log, whether they come back, and how long that takes.
package link
