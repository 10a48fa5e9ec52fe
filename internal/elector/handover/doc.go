// Package handover says how the orderly end of a term goes on, and what a process that closes still waits for.
package handover
