package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/chaos/disk"
	"github.com/goneli/neli/lab/chaos/jail"
	"github.com/goneli/neli/lab/chaos/machine"
	"github.com/goneli/neli/lab/chaos/member"
	"github.com/goneli/neli/lab/chaos/oracle"
	"github.com/goneli/neli/lab/chaos/plan"
	"github.com/goneli/neli/lab/chaos/report"
	"github.com/goneli/neli/lab/chaos/store"
	"github.com/goneli/neli/lab/clients"
	"github.com/goneli/neli/lab/dbtest"
	"github.com/goneli/neli/lab/kafkatest"
)

// Exit codes.
const (
	exitOK        = 0
	exitViolation = 1
	exitSetUp     = 2
)

func main() {
	for env, child := range map[string]func() error{member.Env: member.Main, member.SentinelEnv: member.Sentinel, disk.Env: disk.Main} {
		if os.Getenv(env) == "" {
			continue
		}
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run())
}

func run() int {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err == nil {
		err = possible(o)
	}
	code := exitSetUp
	if err == nil {
		// This bounds the whole run: building takes up to two minutes, the first leaders up to five, and the last
		// fault may take one and a half.
		code, err = jail.Run(o.For+15*time.Minute, func(ctx context.Context) (int, error) { return disturb(ctx, o) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return exitSetUp
	}
	return code
}

func parse(args []string) (machine.Options, error) {
	var o machine.Options
	var nomination, only, first, stores, with string
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.DurationVar(&o.For, "for", 3*time.Minute, "how long faults go on; building and closing come on top")
	flags.Uint64Var(&o.Seed, "seed", 1, "decides which faults, in which order")
	flags.StringVar(&nomination, "nomination", "open", "open or assigned: who may claim in exclusive mode")
	flags.DurationVar(&o.Timeout, "t", 2*time.Second, "T, HeartbeatTimeout of the exclusive mode")
	flags.IntVar(&o.Each, "each", 0, "measure fail-over: this many faults of each kind, at leaders of the exclusive mode; takes hours, whatever -for says")
	flags.BoolVar(&o.Peers, "peers", false, "no brokers: five members with a log host each inside, exclusive mode only")
	flags.StringVar(&stores, "stores", "", "what leaders write to, role by role in turn, separated by semicolons: "+strings.Join(store.Kinds(true), "; ")+" (with brokers); default: all")
	flags.BoolVar(&o.Unfenced, "unfenced", false, "leave out the fences of hold and transactions: the checks must notice it")
	flags.StringVar(&with, "with", "", "settings, separated by semicolons: "+strings.Join(machine.Settings(true), "; ")+"; with -peers: "+strings.Join(machine.Settings(false), "; "))
	flags.StringVar(&o.Former, "former", "", "a program to start as every second member: chaos, built with a former version of the library")
	flags.StringVar(&only, "only", "", "kinds of faults, separated by semicolons: "+strings.Join(plan.Kinds(machine.Settings(true)...), "; ")+"; with -peers: "+strings.Join(plan.PeerKinds(), "; ")+"; with -each: "+strings.Join(plan.FailOverKinds(), "; "))
	flags.StringVar(&first, "first", "", "kinds of faults that come before all others, likewise")
	flags.StringVar(&o.Dir, "out", "chaos-report", "directory of the report; a former report there is replaced")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.For <= 0 {
		return o, fmt.Errorf("-for is %v, must be positive", o.For)
	}
	// Three brokers need this much on a quiet network, by measurement.
	if minimum := 500 * time.Millisecond; o.Timeout < minimum {
		return o, fmt.Errorf("-t is %v, must be at least %v", o.Timeout, minimum)
	}
	switch nomination {
	case "open":
		o.Nomination = neli.NominationOpen
	case "assigned":
		o.Nomination = neli.NominationAssigned
	default:
		return o, fmt.Errorf("-nomination is %q, must be open or assigned", nomination)
	}
	o.Only, o.First, o.Stores, o.With = names(only), names(first), names(stores), names(with)
	if o.Stores == nil {
		o.Stores = store.Kinds(!o.Peers)
	}
	err := store.Check(o.Stores, !o.Peers)
	if err != nil {
		return o, err
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return o, err
	}
	if o.Dir == jail.Scratch || strings.HasPrefix(o.Dir, jail.Scratch+"/") {
		return o, fmt.Errorf("-out is %s: what is below %s does not outlive the run", o.Dir, jail.Scratch)
	}
	err = check(&o)
	return o, err
}

// check checks flags that depend on others, and sets how long a run with -each may take.
func check(o *machine.Options) error {
	if o.Each < 0 {
		return fmt.Errorf("-each is %d, must not be negative", o.Each)
	}
	if (o.Peers || o.Each > 0) && (o.Nomination != neli.NominationOpen || o.First != nil || o.Peers && o.Each > 0) {
		return errors.New("-peers and -each go with -nomination open, without -first, and not together")
	}
	for _, name := range o.With {
		if all := machine.Settings(!o.Peers); !slices.Contains(all, name) || o.Each > 0 {
			return fmt.Errorf("-with has %q, must be without -each, and of %q", name, all)
		}
	}
	if (o.Has(machine.Logs) || o.Has(machine.Prepare)) && o.Nomination != neli.NominationOpen {
		return errors.New("-with logs and -with prepare go with -nomination open")
	}
	kinds := plan.Kinds(o.With...)
	switch {
	case o.Peers:
		kinds = plan.PeerKinds()
	case o.Each > 0:
		kinds = plan.FailOverKinds()
		o.For = time.Duration(o.Each*len(kinds)) * 3 * time.Minute // more than a step takes
	}
	return plan.Check(slices.Concat(o.Only, o.First), kinds)
}

// names splits a list. It returns nil for an empty one.
func names(list string) []string {
	var out []string
	for name := range strings.SplitSeq(list, ";") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// possible returns everything that is missing here.
func possible(o machine.Options) error {
	missing := []error{jail.Possible()}
	if _, err := clients.Chosen(); err != nil {
		missing = append(missing, err)
	}
	if _, err := dbtest.PostgresPrograms(); err != nil {
		missing = append(missing, err)
	}
	if err := kafkatest.Find(); err != nil && !o.Peers {
		missing = append(missing, err)
	}
	if _, err := exec.LookPath(o.Former); err != nil && o.Former != "" {
		missing = append(missing, fmt.Errorf("-former: %w", err))
	}
	if _, err := exec.LookPath("gcc"); err != nil && o.Has(plan.Clocks) {
		missing = append(missing, err)
	}
	if _, err := os.Stat("/dev/fuse"); err != nil && o.Each > 0 {
		missing = append(missing, fmt.Errorf("disks need FUSE: %w", err))
	}
	return errors.Join(missing...)
}

// disturb does the run itself, in the jail.
func disturb(ctx context.Context, o machine.Options) (int, error) {
	// The directory itself stays, since it may have other files.
	for _, name := range []string{machine.MembersDir, machine.BrokersDir, report.Name} {
		if err := os.RemoveAll(filepath.Join(o.Dir, name)); err != nil {
			return 0, err
		}
	}
	o.Scratch = jail.Scratch
	o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	outcome, err := machine.Run(ctx, o)
	if err != nil {
		return 0, err
	}
	return judge(o, outcome)
}

func kernel() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return err.Error()
	}
	return unix.ByteSliceToString(name.Release[:])
}

// where describes the logs that carry the election.
func where(o machine.Options) string {
	if o.Peers {
		return fmt.Sprintf("%d log hosts inside the members", machine.Members)
	}
	return fmt.Sprintf("%d brokers, Kafka %s", machine.Brokers, kafkatest.KafkaVersion)
}

// written lists the kinds of stores to which the leaders write.
func written(o machine.Options) string {
	names := strings.Join(o.Stores, ", ")
	if o.Unfenced {
		names += " without their fences"
	}
	return names
}

// transport describes the network between the members.
func transport(o machine.Options) string {
	if o.Peers {
		return "package peers"
	}
	return clients.Version()
}

// load returns the load average of the last 15 minutes.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return strings.Fields(string(text) + " - - -")[2]
}

// judge writes the report and decides the exit code.
func judge(o machine.Options, outcome *machine.Outcome) (int, error) {
	verdict := oracle.Judge(outcome.Record, outcome.Log, machine.LimitsOf(o))
	verdict.Violations = append(outcome.Complaints, verdict.Violations...)
	subject := report.Subject{
		Settings: [][2]string{
			{"seed", fmt.Sprint(o.Seed)},
			{"nomination", o.Nomination.String()},
			{"T", o.Timeout.String()},
			{"with", strings.Join(o.With, ", ")},
			{"former", o.Former},
			{"time", (outcome.Record.End - outcome.Record.Start).Round(100 * time.Millisecond).String()},
			{"on", where(o)},
			{"members", fmt.Sprint(machine.Members)},
			{"roles", fmt.Sprint(machine.Roles)},
			{"database", outcome.StoreVersion},
			{"stores, by role", written(o)},
			{"client", transport(o)},
			{"load", load()},
			{"machine", fmt.Sprintf("%d cores, Linux %s, %s", runtime.NumCPU(), kernel(), runtime.Version())},
		},
		Record:  outcome.Record,
		Verdict: verdict,
		Packets: outcome.Packets,
		Peers:   o.Peers,
		Dir:     o.Dir,
	}
	if err := report.Write(subject); err != nil {
		return 0, err
	}
	report.Text(os.Stdout, subject)
	fmt.Printf("\n%s and the logs of members and brokers are in %s\n", report.Name, o.Dir)
	if len(verdict.Violations) > 0 {
		return exitViolation, nil
	}
	return exitOK, nil
}
