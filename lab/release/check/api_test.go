package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/exp/apidiff"
)

func TestUnsaid(t *testing.T) {
	report := apidiff.Report{Changes: []apidiff.Change{
		{Message: "Config.Grace: removed"},
		{Message: "(*Neli).Ask: changed from func() to func(int)"},
		{Message: "ErrNew: added", Compatible: true},
	}}
	require.Equal(t, []string{"Config.Grace: removed", "(*Neli).Ask: changed from func() to func(int)"}, unsaid(report, ""))
	require.Equal(t, []string{"(*Neli).Ask: changed from func() to func(int)"}, unsaid(report, "- `Config.Grace` is gone. Asking costs more."))
	require.Empty(t, unsaid(report, "- `Grace` is gone, `Ask` takes a number."))
}
