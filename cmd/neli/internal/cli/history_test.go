package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// historyFile has a leader that falls silent. Another member's Claim takes the role at the given second.
func historyFile(t *testing.T, second string) string {
	const records = `{"neli_history":1,"group":"g","topic":"g.neli","topic_id":"id","starts":[0],"ends":[4]}
{"partition":0,"offset":0,"time":"2026-01-02T03:04:00Z","record":{"neli":1,"group":"g","log":"id","kind":"claim","process":"a","session":1,"name":"host\u001b a","read":-1,"seq":1,"t":5000000000,"roles":"0","fresh":true}}
{"partition":0,"offset":1,"time":"2026-01-02T03:04:01Z","record":{"neli":1,"group":"g","log":"id","kind":"hello","process":"b","session":1,"name":"b","read":0,"seq":1,"longest":5000000000,"hello":{"roles":1}}}
{"partition":0,"offset":2,"time":"2026-01-02T03:04:02Z","record":{"neli":1,"group":"g","log":"id","kind":"beat","process":"a","session":1,"read":1,"seq":2,"t":5000000000,"longest":5000000000}}
{"partition":0,"offset":3,"time":"2026-01-02T03:04:SSZ","record":{"neli":1,"group":"g","log":"id","kind":"claim","process":"b","session":1,"name":"b","read":2,"seq":2,"t":5000000000,"longest":5000000000,"roles":"0"}}
`
	file := filepath.Join(t.TempDir(), "records.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(records, "SS", second, 1)), 0o600))
	return file
}

func TestHistoryOfAFile(t *testing.T) {
	good, bad := historyFile(t, "09"), historyFile(t, "03")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", 0, "ROLE  TOKEN  HOLDER        FROM                      UNTIL                     END       TO\n" +
			"0     0      \"host\\x1b a\"  2026-01-02T03:04:00.000Z  2026-01-02T03:04:06.500Z  outlived  \n" +
			"0     3      b             2026-01-02T03:04:09.000Z                            leads     \n"},
		{"--role 4", 0, "ROLE  TOKEN  HOLDER  FROM  UNTIL  END  TO\n"},
		{"--json", 0, `{"role":0,"partition":0,"token":0,"member":"a","name":"host\u001b a","session":1,"lease_ms":5000,"from":"2026-01-02T03:04:00Z","until":"2026-01-02T03:04:06.5Z","evidence":2,"ended_at":3,"end":"outlived"}` + "\n" +
			`{"role":0,"partition":0,"token":3,"member":"b","name":"b","session":1,"lease_ms":5000,"from":"2026-01-02T03:04:09Z","evidence":3,"end":"leads"}` + "\n"},
		{"--prove", 0, "4 records, 2 terms, 1 waits, of which 1 are shown by timestamps\nproven: no rule that these records show was broken\n"},
		{"--prove --json", 0, `{"group":"g","topic":"g.neli","proven":true,"terms":2,"records":4,"waits":1,"waits_shown":1,"faults":[],"more_faults":0,"unproven":[]}` + "\n"},
	} {
		var out strings.Builder
		require.Equal(t, c.code, Main(append([]string{"history", "--file", good}, strings.Fields(c.args)...), &out, os.Stderr), c.args)
		require.Equal(t, c.want, out.String(), c.args)
	}
	var out strings.Builder
	require.Equal(t, codeBroken, Main([]string{"history", "--file", bad, "--prove"}, &out, os.Stderr))
	require.Contains(t, out.String(), `
broken: wait: the Claim's sender wrote offset 1 before that evidence, and the Claim 2s later by the same clock; a lease of 5s cannot have ended since
  partition 0 offset 3: claim of "b" ("b" session 1), read 2, 2026-01-02T03:04:03Z
  partition 0 offset 2: beat of "host\x1b a" ("a" session 1), read 1, 2026-01-02T03:04:02Z
`)
	out.Reset()
	require.Zero(t, Main([]string{"history", "--file", good, "--svg"}, &out, os.Stderr))
	require.True(t, strings.HasPrefix(out.String(), "<svg "))
}

func TestHistoryRefusesBadInput(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, []byte(`{"neli_history":1,"group":"g","starts":[0],"ends":[0]}`), 0o600))
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--role -2", codeFailure, "neli: --role -2: must be a number from 0 to 999999\n"},
		{"--role 1 --prove", codeFailure, "neli: --role: must not be combined with --prove or --records, which take all roles\n"},
		{"--svg --json", codeFailure, "neli: --svg: must not be combined with --json, --prove or --records: name one of them\n"},
		{"--records --file x", codeFailure, "neli: --records: must not be combined with --json, --prove or --file: name one of them\n"},
		{"--file /nowhere", codeFailure, "neli: --file /nowhere: open /nowhere: no such file or directory\n"},
		{"--file " + empty, codeUnknown, "neli: no record of the group was read\n"},
		{"--prove --file " + empty, codeUnknown, "neli: no record of the group was read: nothing to prove\n"},
		{"", codeFailure, "neli: --group (or NELI_GROUP) is missing\n"},
	} {
		var errs strings.Builder
		require.Equal(t, c.code, Main(append([]string{"history"}, strings.Fields(c.args)...), io.Discard, &errs), c.args)
		require.Equal(t, c.want, errs.String())
	}
}
