package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
)

// With exit code 124 the command says what it has waited for, and what its user can type.
func TestEndOfTheWaitNamesTheReason(t *testing.T) {
	for _, tc := range []struct {
		reached bool
		status  neli.Status
		want    string
	}{
		{false, neli.StatusUnknown, "no broker was reached; neli check says why"},
		{true, neli.StatusHeld, `"a\x1b" leads and was heard 250ms ago; it leads until its command ends or neli step-down moves it, and neli run without --wait waits for that`},
		{true, neli.StatusVacant, "nobody leads, and no claim of this process came back from the topic; neli check says whether it can write, and how large --timeout must be"},
		{true, neli.StatusUnknown, "the topic does not show yet who leads; a former leader may have had a longer --timeout than this process (5s); run it with a longer --wait, 70s at most"},
	} {
		require.Equal(t, tc.want, unelectedBecause(tc.reached, tc.status, neli.Holder{Name: "a\x1b", Age: 250 * time.Millisecond}, 5*time.Second))
	}
}
