package cli

import (
	_ "embed" // the preface
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/goneli/neli/internal/version"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
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

//go:embed preface.txt
var preface string

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

// said maps each text of the help to the first verb that has it.
type said map[string]string

// of returns a verb's paragraphs or flags. In place of a text that an earlier verb has, it only names that verb.
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

func newMan(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "man directory",
		Short: "Write manual pages into a directory",
		Args:  arguments(1, 1, "the directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "NELI", Section: "1", Source: "neli"}, args[0]); err != nil {
				return fmt.Errorf("cannot write manual pages: %w", err)
			}
			return nil
		},
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "neli", version.Text())
			return err
		},
	}
}
