package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/bench/trial"
)

func TestGroupsWithAFarMember(t *testing.T) {
	r := fixed()
	page, err := r.Page(PageName)
	require.NoError(t, err)
	assert.NotContains(t, page, "far member")
	r.Take(Run{ID: "3", Commit: "0000003", Date: "2026-01-03"}, &Results{Systems: []System{
		{Family: "neli", Bed: "1 broker, a far member", Setting: "Open, T = 5s", Lease: 5000, Results: &trial.Results{
			Gap: []float64{4, 8}, ToFar: []float64{50}, FromFar: []float64{30, 90}, Killed: []float64{4000}, Terms: 7}}}})
	page = pagesOf(t, r)[PageName]
	assert.Contains(t, page, "than the others (commit 0000003 of 2026-01-03).\n")
	assert.Contains(t, page, "| Open, T = 5s | 6.0 [4.0–8.0], n = 2 | 50 [50–50], n = 1 | 60 [30–90], n = 2 | 4000 [4000–4000], n = 1 | – |\n")
	assert.Contains(t, page, "trials (commit 0000002 of 2026-01-02).\n", "the other rows keep their run")
}
