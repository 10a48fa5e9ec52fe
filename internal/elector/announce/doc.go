// Package announce says when this process writes Hellos and Snapshots.
package announce
