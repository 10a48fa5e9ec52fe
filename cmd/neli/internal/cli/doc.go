// Package cli has the verbs of the command neli, their flags, and exit codes.
package cli
