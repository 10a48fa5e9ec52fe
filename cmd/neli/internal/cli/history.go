package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/goneli/neli/internal/history"
)

// codeBroken is the exit code of history when a rule was broken.
const codeBroken = 1

const historyLong = `Show who led which role, from when to when, and why it ended, as far as retention has left records.
Times are the records' timestamps; a term whose holder fell silent is shown until its lease's end. Tokens
are without Config.TokenBase. Ends: released, handed over, moved (for balance), transferred (by a person),
lapsed (released late), died (by a sentinel), outlived (fell silent), lost (the log went back).

--prove checks rules, and names two records if one was broken:
- order: offsets grow, and no sender had read what was not written yet;
- evidence: a Claim that took a role had read its holder's newest evidence;
- wait: it came a lease later, by its sender's timestamps on either side of that evidence. A clock set
  back looks like a short wait;
- overlap: a term began with its Claim, after the former one had ended;
- fold: no Snapshot, Beat or Release shows a member that saw other holders.
It names what it cannot prove. No record shows how clocks ran: whether a holder stopped in time, or a
claimant without an earlier record waited. A majority of logs (Config.Logs, peers) has no history.

Exit codes: 0 all is well; 1 a rule was broken; 3 the topic is missing; 4 no record of the group was
read; 5 no broker was reached; 125 neli itself failed.`

// tale holds the flags of history.
type tale struct {
	json, svg, prove, records bool
	file                      string
	role                      int
}

func newHistory(c *common) *cobra.Command {
	var o tale
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show who led, and prove it from the records",
		Long:  historyLong,
		Args:  arguments(0, 0, ""),
		Example: `  neli history --bootstrap kafka:9092 --group mailer --records > mailer.jsonl
  neli history --file mailer.jsonl --prove`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if o.file != "" {
				h, err := readHistory(o.file)
				if err != nil {
					return fmt.Errorf("--file %s: %w", o.file, err)
				}
				return o.show(cmd.OutOrStdout(), h)
			}
			return c.history(cmd, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print a JSON object for each term, or for the proof")
	f.BoolVar(&o.svg, "svg", false, "print a time line as SVG")
	f.BoolVar(&o.prove, "prove", false, "check the records")
	f.BoolVar(&o.records, "records", false, "print the group's records, for --file")
	f.StringVar(&o.file, "file", "", "read records from this file; - is standard input")
	f.IntVar(&o.role, "role", -1, "number of the only role to show")
	return cmd
}

// check returns what is wrong with the flags.
func (o tale) check() error {
	switch {
	case o.role < -1 || o.role > maxRole:
		return fmt.Errorf("--role %d: must be a number from 0 to %d", o.role, maxRole)
	case o.role >= 0 && (o.prove || o.records):
		return errors.New("--role: must not be combined with --prove or --records, which take all roles")
	case o.svg && (o.json || o.prove || o.records):
		return errors.New("--svg: must not be combined with --json, --prove or --records: name one of them")
	case o.records && (o.json || o.prove || o.file != ""):
		return errors.New("--records: must not be combined with --json, --prove or --file: name one of them")
	}
	return nil
}

func readHistory(file string) (*history.History, error) {
	if file == "-" {
		return history.ReadFile(os.Stdin)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return history.ReadFile(f)
}

// history reads the topic. An observer that takes no part finds the brokers and the topic.
func (c *common) history(cmd *cobra.Command, o tale) error {
	n, s, err := c.scouted(cmd.Context(), cmd, 1)
	if err != nil {
		return err
	}
	defer func() { _ = n.Close() }()
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	cfg := n.Config()
	reader, err := s.Provider.LogReader(<-s.reading, slog.New(slog.DiscardHandler))
	if err != nil {
		return explained(err, cfg.KafkaConfig)
	}
	defer func() { _ = reader.Close() }()
	out := cmd.OutOrStdout()
	var h *history.History
	var file *history.Recorder
	err = history.Fetch(cmd.Context(), <-s.admins, reader, cfg.LeaderTopic, cfg.LeaderGroupID,
		func(log history.Log) (err error) {
			if h, err = history.New(log); err == nil && o.records {
				file, err = history.NewRecorder(out, log)
			}
			return err
		},
		func(e history.Entry) error {
			if o.records {
				return file.Add(e)
			}
			return h.Add(e)
		})
	if err != nil {
		return errors.New(withoutSecrets(err, cfg.KafkaConfig))
	}
	if o.records {
		return some(file.Records, file.End())
	}
	return o.show(out, h)
}

// show prints what the flags ask for.
func (o tale) show(out io.Writer, h *history.History) error {
	r := h.Result()
	if o.prove {
		return o.proof(out, h, r)
	}
	terms := r.Terms
	if o.role >= 0 {
		terms = nil
		for _, t := range r.Terms {
			if t.Role == o.role {
				terms = append(terms, t)
			}
		}
	}
	var err error
	switch {
	case o.svg:
		err = history.SVG(out, terms, h.Newest())
	case o.json:
		for e := json.NewEncoder(out); len(terms) > 0 && err == nil; terms = terms[1:] {
			err = e.Encode(terms[0])
		}
	default:
		err = table(out, terms, h.Names())
	}
	return some(r.Records, err)
}

// some returns err, or an error if no record was read.
func some(records int, err error) error {
	if err == nil && records == 0 {
		err = exit{code: codeUnknown, err: errors.New("no record of the group was read")}
	}
	return err
}

func table(out io.Writer, terms []history.Term, names map[string]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ROLE\tTOKEN\tHOLDER\tFROM\tUNTIL\tEND\tTO")
	for _, t := range terms {
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%s\t%s\n", t.Role, t.Token, printable(t.Name), instant(t.From), instant(t.Until), t.End, printable(names[t.To]))
	}
	return w.Flush()
}

func instant(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z")
}

// proof prints what the records prove. It fails if a rule was broken or no record was read.
func (o tale) proof(out io.Writer, h *history.History, r history.Result) error {
	var err error
	switch {
	case len(r.Faults) > 0:
		err = exit{code: codeBroken}
	case r.Records == 0:
		err = exit{code: codeUnknown, err: errors.New("no record of the group was read: nothing to prove")}
	}
	if o.json {
		return errors.Join(json.NewEncoder(out).Encode(struct {
			Group  string `json:"group"`
			Topic  string `json:"topic"`
			Proven bool   `json:"proven"`
			Terms  int    `json:"terms"`
			history.Result
		}{h.Group, h.Topic, err == nil, len(r.Terms), r}), err)
	}
	fmt.Fprintf(out, "%d records, %d terms, %d waits, of which %d are shown by timestamps\n", r.Records, len(r.Terms), r.Waits, r.Shown)
	for _, f := range r.Faults {
		fmt.Fprintln(out, "broken:", f)
	}
	if r.More > 0 {
		fmt.Fprintf(out, "broken: %d times more\n", r.More)
	}
	for _, u := range r.Unproven {
		fmt.Fprintln(out, "not provable:", u)
	}
	if err == nil {
		_, err = fmt.Fprintln(out, "proven: no rule that these records show was broken")
	}
	return err
}
