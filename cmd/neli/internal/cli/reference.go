package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// Reference writes the page of all verbs and flags, docs/cli.md, which is made of what the
// command itself says.
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

For operators who run one copy of a command in a cluster, or look at and move leadership from a shell.

` + "`go install github.com/goneli/neli/cmd/neli@latest`" + `, or [otherwise](install.md). ` + "`make cli-reference`" + ` writes this page from the command's own help.

` + "```" + `
neli run --bootstrap kafka:9092 --group nightly-report -- /usr/local/bin/report
neli status --bootstrap kafka:9092 --group nightly-report
neli transfer --bootstrap kafka:9092 --group nightly-report host7
` + "```" + `

A group has one kind of job: all who say the same group contend for one lease. Groups may share a topic (` + "`--topic`" + `).
` + "`neli completion`" + ` has completions for shells, ` + "`neli man`" + ` manual pages.

## Flags of all verbs

Each flag may be given as a variable of the environment, too: ` + "`--log-level`" + ` as ` + "`NELI_LOG_LEVEL`" + `. Within the command that
` + "`neli run`" + ` runs, ` + "`NELI_GROUP`, `NELI_TOPIC`, `NELI_NAME` and `NELI_ROLE`" + ` are not taken for flags.

`

// table writes flags, ascending.
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
