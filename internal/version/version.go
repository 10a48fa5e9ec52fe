// Package version tells which version of this repository a command is.
package version

import (
	"cmp"
	"runtime/debug"
)

// text is set by builds from a checkout (make commands). Go itself knows the version only of a module that it has downloaded.
var text string

// Text returns the version of this program, and that of Go.
func Text() string {
	is, toolchain := text, ""
	if info, ok := debug.ReadBuildInfo(); ok {
		is, toolchain = cmp.Or(is, info.Main.Version), info.GoVersion
	}
	return cmp.Or(is, "unknown") + " " + toolchain
}
