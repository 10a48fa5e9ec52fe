package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Reference writes docs/cli.md, the page of all verbs and flags, from the command's own help.
func Reference(w io.Writer) error {
	root := newRoot()
	var b strings.Builder
	once := said{}
	fmt.Fprintf(&b, "%s%s\n", preface, strings.Join(list(root.PersistentFlags()), "\n"))
	for _, cmd := range root.Commands() {
		fmt.Fprintf(&b, "\n## neli %s\n\n%s.\n", cmd.Name(), cmd.Short)
		if cmd.Use != cmd.Name() {
			fmt.Fprintf(&b, "\n```\nneli %s\n```\n", cmd.Use)
		}
		if cmd.Long != "" {
			fmt.Fprintf(&b, "\n```text\n%s\n```\n", strings.Join(once.of(cmd.Name(), strings.Split(cmd.Long, "\n\n")), "\n\n"))
		}
		if cmd.Example != "" {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
		}
		if own := cmd.LocalNonPersistentFlags(); own.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s\n", strings.Join(once.of(cmd.Name(), list(own)), "\n"))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const preface = `# The command neli

For operators who run one copy of a command in a cluster, or who show and move leadership from a shell.

Install it by ` + "`go install github.com/goneli/neli/cmd/neli@latest`" + `, or in [another way](install.md). ` + "`make generate`" + ` writes this page from the command's own help.

` + "```" + `
neli run --bootstrap kafka:9092 --group mailer -- /usr/local/bin/mailer
neli status --bootstrap kafka:9092 --group mailer
neli transfer --bootstrap kafka:9092 --group mailer host7
` + "```" + `

Use one group for each kind of job: all processes with the same group contend for one lease. Groups may share a topic
(` + "`--topic`" + `). ` + "`neli completion`" + ` prints shell completions, ` + "`neli man`" + ` writes manual pages.

## Once per period

` + "`neli run`" + ` is for a command that runs all the time. When it ends, the next waiting ` + "`neli run`" + ` starts the command again: if cron starts
the same short job on three machines at once, it runs three times, one after the other. To run a job once per period:

- Run the scheduler under ` + "`neli run`" + `, not the job: ` + "`neli run --group cron -- supercronic /etc/jobs`" + `, or a loop that sleeps. It runs on
  one machine at a time, and on another one when that fails. A run may be missed or repeated when leadership moves.
- Or have the job itself refuse to run twice: it notes the period (the date, say) where it writes its result, in the same
  transaction, and ends if the note is there. Then cron may start it on each machine, and a machine that fails costs no run.
- A program in Go has [nelicron](jobs.md).

A cron job gives ` + "`--wait`" + ` at least twice ` + "`--timeout`" + `, so that it also runs after a crash.

## The file of --config

One property per line, ` + "`name=value`" + ` or ` + "`name: value`" + `, in UTF-8. ` + "`#` or `!`" + ` begins a comment, on a line of its own. A backslash begins an
escape as in Java's properties: ` + "`\\\\`" + ` is one backslash, ` + "`\\=`, `\\:`, `\\#`, `\\\"`" + ` that character, ` + "`\\u00e9`" + ` a character by its number. A
backslash at the end of a line continues it. A certificate or key in PEM format may take several lines, or one with ` + "`\\n`" + ` between its lines.
What Java, librdkafka and people read differently is refused with its line's number: other escapes, quotes around a value, a comment
behind it, ` + "`${…}`" + `. [Clients](clients.md#properties-with-franz-go) lists the properties. One of Java's is refused, with what to write instead.

## Flags of all subcommands

An environment variable can set each flag: ` + "`NELI_LOG_LEVEL`" + ` sets ` + "`--log-level`" + `. An argument wins over a variable, and both
win over the file of ` + "`--config`" + `. If both ` + "`--bootstrap` and `-X bootstrap.servers=…`" + ` are arguments, or both are variables,
` + "`--bootstrap`" + ` wins. Inside a command that ` + "`neli run`" + `
or ` + "`neli watch --exec`" + ` runs, ` + "`NELI_GROUP`, `NELI_TOPIC`, `NELI_NAME`, `NELI_ROLE` and `NELI_ROLES`" + ` do not set flags, even
if you have set them yourself. Pass them as arguments: ` + "`neli status --group \"$NELI_GROUP\"`" + `.

`

// list returns flags, sorted by name, each with its default.
func list(flags *pflag.FlagSet) []string {
	var out []string
	flags.VisitAll(func(f *pflag.Flag) {
		name := "--" + f.Name
		if f.Shorthand != "" {
			name += ", -" + f.Shorthand
		}
		if value := strings.Trim(f.DefValue, "[]"); value != "" && value != "false" {
			name += "=" + value
		}
		out = append(out, fmt.Sprintf("- `%s`: %s", name, f.Usage))
	})
	return out
}

// said is the verb that was first described by a text.
type said map[string]string

// of returns a verb's paragraphs or flags. Of those that stand with a former verb it says only with which.
func (s said) of(verb string, texts []string) []string {
	var out []string
	for _, text := range texts {
		flag, _, isFlag := strings.Cut(strings.TrimPrefix(text, "- "), "`: ")
		former, again := s[text]
		switch {
		case !again:
			s[text] = verb
			out = append(out, text)
		case isFlag:
			out = append(out, fmt.Sprintf("- %s`: as for neli %s", flag, former))
		case !slices.Contains(out, "For the rest see neli "+former+"."):
			out = append(out, "For the rest see neli "+former+".")
		}
	}
	return out
}
