package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// Reference writes docs/cli.md, the page of all verbs and flags, from the command's own help.
func Reference(w io.Writer) error {
	root := newRoot()
	var b strings.Builder
	b.WriteString(preface)
	table(&b, root.PersistentFlags())
	for _, cmd := range root.Commands() {
		fmt.Fprintf(&b, "\n## neli %s\n\n%s.\n\n```\nneli %s\n```\n", cmd.Name(), cmd.Short, cmd.Use)
		if cmd.Long != "" {
			fmt.Fprintf(&b, "\n```text\n%s\n```\n", cmd.Long)
		}
		if own := cmd.LocalNonPersistentFlags(); own.HasAvailableFlags() {
			b.WriteString("\n")
			table(&b, own)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const preface = `# The command neli

For operators who run one copy of a command in a cluster, or who show and move leadership from a shell.

Install it by ` + "`go install github.com/goneli/neli/cmd/neli@latest`" + `, or in [another way](install.md). ` + "`make cli-reference`" + ` writes this page from the command's own help.

` + "```" + `
neli run --bootstrap kafka:9092 --group nightly-report -- /usr/local/bin/report
neli status --bootstrap kafka:9092 --group nightly-report
neli transfer --bootstrap kafka:9092 --group nightly-report host7
` + "```" + `

Use one group for each kind of job: all processes with the same group contend for one lease. Groups may share a topic
(` + "`--topic`" + `). ` + "`neli completion`" + ` prints shell completions, ` + "`neli man`" + ` writes manual pages.

## Flags of all subcommands

An environment variable can set each flag: ` + "`NELI_LOG_LEVEL`" + ` sets ` + "`--log-level`" + `. An argument wins over a variable, and both
win over the file of ` + "`--config`" + `. If both ` + "`--bootstrap` and `-X bootstrap.servers=…`" + ` are arguments, or both are variables,
` + "`--bootstrap`" + ` wins. Inside a command that ` + "`neli run`" + `
or ` + "`neli watch --exec`" + ` runs, ` + "`NELI_GROUP`, `NELI_TOPIC`, `NELI_NAME`, `NELI_ROLE` and `NELI_ROLES`" + ` do not set flags, even
if you have set them yourself. Pass them as arguments: ` + "`neli status --group \"$NELI_GROUP\"`" + `.

`

// table writes a table of flags, sorted by name.
func table(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString("| flag | default | |\n|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		name := "--" + f.Name
		if f.Shorthand != "" {
			name += ", -" + f.Shorthand
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, strings.Trim(f.DefValue, "[]"), f.Usage)
	})
}
