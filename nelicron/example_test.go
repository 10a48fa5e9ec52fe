package nelicron_test

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelicron"
)

func ExampleJobs() {
	n, err := neli.New(neli.Config{LeaderGroupID: "billing", Roles: 64, DrainTimeout: 5 * time.Minute})
	if err != nil {
		log.Print(err)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	log.Print(errors.Join(serve(ctx, n), n.Close()))
}

func serve(ctx context.Context, n *neli.Neli) error {
	jobs, err := nelicron.New(n)
	if err != nil {
		return err
	}
	locker, err := jobs.Locker()
	if err != nil {
		return err
	}
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		return err
	}
	task := jobs.Task("invoices", func(ctx context.Context, l neli.Leadership) error {
		for _, customer := range customers {
			if !l.Valid() { // reads the clock; call it before each action
				return context.Cause(ctx)
			}
			send(customer, l.Token)
		}
		return nil
	})
	if _, err := s.NewJob(gocron.CronJob("0 6 * * *", false), task, gocron.WithName("invoices")); err != nil {
		return err
	}
	s.Start()
	return errors.Join(jobs.Run(ctx), s.Shutdown()) // Run returns when ctx is done and the last job has ended
}

var customers = []string{"ACME"}

func send(customer string, token int64) { log.Print(customer, token) }

// The page shows the code that is compiled here.
func TestPageShowsThisExample(t *testing.T) {
	page, err := os.ReadFile("../docs/jobs.md")
	require.NoError(t, err)
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)```go\n(func serve.*?)```").FindSubmatch(page)
	require.NotNil(t, shown)
	require.Contains(t, string(source), string(shown[1]))
}
