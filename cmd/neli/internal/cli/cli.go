package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/goneli/neli/internal/version"
)

// codeFailure is the exit code when this program itself failed, the same as that of timeout(1).
const codeFailure = 125

// exit is an error with an exit code of its own. err is nil if nothing is to be printed.
type exit struct {
	code int
	err  error
}

func (e exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Main runs the verb that args name and returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	if code, ok := guarded(args); ok {
		return code
	}
	log := newLogWriter(stderr)
	defer log.close()
	c := &common{}
	root := newRootWith(c)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(log)
	err := root.Execute()
	if err == nil {
		return 0
	}
	code := codeFailure
	if e, ok := errors.AsType[exit](err); ok {
		code = e.code
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(log, "neli:", tidy(c.placed(text)))
	}
	return code
}

// tidy returns an error's text as the command prints it: without the library's prefixes and names of
// calls, and with the flag in place of the field of Config.
func tidy(text string) string {
	text = strings.ReplaceAll(": "+text, ": neli: ", ": ")[2:]
	for _, call := range []string{"Ask: ", "CallMembers: ", "New: ", "RunSentinel: ", "invalid configuration:\n", "invalid configuration: "} {
		text = strings.TrimPrefix(text, call)
	}
	text = badValue.ReplaceAllStringFunc(onlyInGo.ReplaceAllString(text, ""), readable)
	return fieldAtStart.ReplaceAllStringFunc(text, func(field string) string { return flagOf[strings.TrimSuffix(field, ":")] + ":" })
}

// onlyInGo matches advice in the library's errors that only a program can follow.
var onlyInGo = regexp.MustCompile(` \(in Go: [^()]*\)`)

// badValue matches the error about a flag's value that is not of the flag's type. That error ends in Go's own words.
var badValue = regexp.MustCompile(`invalid argument ("(?:[^"\\]|\\.)*") for "(?:-., )?(--[a-z-]+)" flag: (time|strconv\.ParseBool|strconv)\b.*`)

func readable(text string) string {
	m := badValue.FindStringSubmatch(text)
	must := map[string]string{"time": "a duration, such as 5s or 500ms", "strconv.ParseBool": "true or false", "strconv": "a whole number"}[m[3]]
	return m[2] + ": " + m[1] + " must be " + must
}

// property matches the beginning of the library's error about a property of its KafkaConfig.
var property = regexp.MustCompile(`(?m)^(?:Kafka client: )?KafkaConfig(?:\[([^\]]+)\]: |: ([A-Za-z0-9._-]+)([:=]))`)

// placed returns an error's text with the place where each faulty property was given, and with flags in place
// of the library's fields.
func (c *common) placed(text string) string {
	if !property.MatchString(text) {
		return text
	}
	text = strings.NewReplacer("LeaderGroupID", "--group", "HeartbeatTimeout", "--timeout").Replace(text)
	return property.ReplaceAllStringFunc(text, func(begins string) string {
		m := property.FindStringSubmatch(begins)
		name, mark := m[1]+m[2], ": "
		if m[3] == "=" {
			mark = "="
		} else if m[3] == ":" {
			mark = ":"
		}
		switch where, ok := c.where[name]; {
		case !ok: // the library derived it from other properties
			return name + mark
		case where == "--bootstrap":
			return where + mark
		case strings.Contains(where, ":"):
			return where + ": " + name + mark
		default:
			return where + " " + name + mark
		}
	})
}

// flagOf maps names in the library's errors to flags and arguments.
var flagOf = map[string]string{"LeaderGroupID": "--group", "LeaderTopic": "--topic", "Name": "--name", "Advertise": "--advertise", "HeartbeatTimeout": "--timeout",
	"Roles": "--roles", "DrainTimeout": "--drain", "Request.Role": "--role", "Request.To": "member",
	"Sentinel": "--socket", "allow": "--allow"}

var fieldAtStart = regexp.MustCompile(`(?m)^(LeaderGroupID|LeaderTopic|Name|Advertise|HeartbeatTimeout|Roles|DrainTimeout|Request\.Role|Request\.To|Sentinel|allow):`)

func newRoot() *cobra.Command { return newRootWith(&common{}) }

// newRootWith returns the command. c gets the common flags.
func newRootWith(c *common) *cobra.Command {
	root := &cobra.Command{
		Use:           "neli",
		Short:         "Run commands under leader election on Kafka, and show who leads",
		Version:       version.Text(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return fromEnvironment(cmd.Flags())
		},
	}
	root.SetVersionTemplate("neli {{.Version}}\n")
	c.register(root.PersistentFlags())
	root.AddCommand(newRun(c), newStatus(c), newHistory(c), newWatch(c), newTransfer(c), newStepDown(c), newRebalance(c), newCheck(c), newSentinel(c), newVersion(), newMan(root))
	return root
}

// fromEnvironment takes the flags that were not given from NELI_<FLAG>. Inside a command of neli run, or a
// program of neli watch --exec, it ignores the variables that the outer neli set: an inner neli run would
// wait forever for the outer one's group, and watch's NELI_ROLES is a list of roles.
func fromEnvironment(flags *pflag.FlagSet) error {
	nested := nested()
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := variable(f.Name)
		value, ok := os.LookupEnv(name)
		if f.Changed || !ok || f.Name == "help" || f.Name == "version" || nested && slices.Contains(told, name) {
			return
		}
		if err := errors.Join(flags.Set(f.Name, value), flags.SetAnnotation(f.Name, environment, nil)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	})
	return errors.Join(errs...)
}

// environment annotates the flags that fromEnvironment has set.
const environment = "environment"

// typed reports whether a flag was given as an argument.
func typed(f *pflag.Flag) bool {
	_, ok := f.Annotations[environment]
	return f.Changed && !ok
}

// nested reports whether another neli has started this process.
func nested() bool {
	_, ok := os.LookupEnv("NELI_TOKEN") // neli run and neli watch --exec set it
	return ok
}

// told lists the variables that neli run or neli watch sets for a program, and that would also set flags
// of a neli which that program runs.
var told = []string{"NELI_GROUP", "NELI_TOPIC", "NELI_NAME", "NELI_ROLE", "NELI_ROLES"}

// variable returns the environment variable of a flag.
func variable(flag string) string {
	return "NELI_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
