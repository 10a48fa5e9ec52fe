//go:build unix

package main

import (
	"testing"

	"github.com/goneli/neli/internal/mutation"
)

// rules are what a leader keeps to while it reads ahead. What rests on the servers is in the tests with servers.
var rules = []mutation.Mutant{
	{Rule: "Valid is asked before each batch", File: "relay.go",
		Old: "	for t.now.Valid() && ctx.Err() == nil {\n", New: "	for ctx.Err() == nil {\n",
		Guard: "TestReadingAheadLosesAndRepeatsNothing", Want: "a batch is begun without asking Valid"},
	{Rule: "a row under way is not read again", File: "relay.go",
		Old: "t.next(reading, w, published, ids)", New: "t.next(reading, w, published, nil)",
		Guard: "TestReadingAheadLosesAndRepeatsNothing", Want: "is published twice|is not in order"},
	{Rule: "rows are deleted after they are published", File: "relay.go",
		Old: "t.next(reading, w, published, ids)", New: "t.next(reading, w, append(ids, published...), ids)",
		Guard: "TestReadingAheadLosesAndRepeatsNothing", Want: "a row is deleted that is not published"},
	{Rule: "a note also has the rows that are being deleted", File: "relay.go",
		Old: "t.publish(ctx, w, rows, published)", New: "t.publish(ctx, w, rows, nil)",
		Guard: "TestReadingAheadLosesAndRepeatsNothing", Want: "is published twice"},
	{Rule: "a batch that is not full leaves the rows before it to be deleted", File: "relay.go",
		Old: "	case !full:\n		return nil, slices.Concat(published, ids), nil", New: "	case !full:\n		return nil, ids, nil",
		Guard: "TestReadingAheadLosesAndRepeatsNothing", Want: "is published twice"},
	{Rule: "a row is not set aside because its note names many rows", File: "relay.go",
		Old: "n > 1 || r.more {", New: "n > 1 {",
		Guard: "TestARowIsNotSetAsideForItsNote", Want: "invalid memory address|nil pointer"},
	{Rule: "reading has ended when a batch has failed", File: "relay.go",
		Old: "		<-read\n		return nil, nil, err\n", New: "		return nil, nil, err\n",
		Guard: "TestReadingAheadLosesAndRepeatsNothing", Want: "a call outlives the work"},
	{Rule: "no batch is begun before the next one is read and the former ones are deleted", File: "relay.go",
		Old: "	err = <-read\n", New: "",
		Guard: "TestReadingAheadLosesAndRepeatsNothing", Want: "is published twice|a call outlives the work|rows are lost|stay in the table"},
	{Rule: "the end of a term does not wait for what the client cannot know", File: "header.go",
		Old: "		kgo.AllowIdempotentProduceCancellation(),\n", New: "",
		Guard: "TestAPublicationEndsWithItsContext", Want: "it waits for the client"},
}

func TestRulesAreGuarded(t *testing.T) { mutation.Run(t, rules) }
