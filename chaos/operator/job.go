package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goneli/neli/testkit/witness"
)

// pace is how often the job says that it runs.
const pace = 10 * time.Millisecond

// beJob is the job that neli runs. Until it is killed it appends lines to a file:
//
//	nanoseconds token name [overlap]
//
// by the monotonic clock, which all machines of the demonstration share. The last word says that
// another job had the lock when this one began.
func beJob(file string) int {
	lines, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		err = work(lines, file+".lock")
	}
	fmt.Fprintln(os.Stderr, "job:", err)
	return 1
}

func work(lines *os.File, lockFile string) error {
	lock, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // this also releases the lock
	word := ""
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		word = " " + overlapWord
	}
	token, name := os.Getenv("NELI_TOKEN"), os.Getenv("NELI_NAME")
	for tick := time.NewTicker(pace); ; <-tick.C {
		if _, err := fmt.Fprintf(lines, "%d %s %s%s\n", witness.Now(), token, name, word); err != nil {
			return err
		}
	}
}
