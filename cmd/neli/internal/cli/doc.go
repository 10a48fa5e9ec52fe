// Package cli implements the verbs of the command neli, their flags and their exit codes.
package cli
