//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// outliveLog keeps this process alive when its log cannot be written: when the reader of standard error has
// gone, when its file has reached the limit of its size, and when the process is in the background of a
// terminal that stops background writers (stty tostop). A verb that runs for long calls it before it logs.
func outliveLog() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGXFSZ) // not ignored: programs that it starts would inherit that
	signal.Ignore(syscall.SIGTTOU)                                           // a handler would be called for ever; the guard undoes it for the command
}
