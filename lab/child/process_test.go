package child

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/nursery"
)

// A run with lines that nobody understands must fail, and the lines after them count all the same.
func TestOutputIsReadToItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		writes  string
		heard   int
		garbled bool
	}{
		"lines":                 {`printf '1\n2\n'`, 2, false},
		"a line without an end": {`printf '1\n2'`, 1, false},
		"no JSON":               {`printf '1\nx\n2\n'`, 2, true},
		"a long line":           {`echo 1; printf '"'; head -c 2000000 /dev/zero | tr '\0' x; echo '"'; echo 2`, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := nursery.New("")
			require.NoError(t, err)
			defer n.Close()
			o := Options{Nursery: n, Dir: t.TempDir(), Name: "m1.1", Keep: true}
			heard := 0
			o.Hear = func(line []byte) error {
				var v any
				err := json.Unmarshal(line, &v)
				if err == nil {
					heard++
				}
				return err
			}
			p, err := New(exec.Command("sh", "-c", "read parameters; echo \"$parameters\" >&2; "+c.writes), "parameters", o)
			require.NoError(t, err)
			<-p.Done()
			require.Equal(t, c.heard, heard)
			require.Equal(t, c.garbled, p.Garbled() != nil, "%v", p.Garbled())
			require.False(t, p.Killed())
			require.Greater(t, p.Died(), p.Born)
			printed, err := os.ReadFile(filepath.Join(o.Dir, "m1.1.stderr"))
			require.NoError(t, err)
			require.Equal(t, "\"parameters\"\n", string(printed))
			require.NoError(t, p.Samples.Close())
		})
	}
}
