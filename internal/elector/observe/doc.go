// Package observe knows who is known to hold what, for Holder, Watch and Standings. It decides nothing.
package observe
