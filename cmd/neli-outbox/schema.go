package main

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/goneli/neli/fence"
)

//go:embed schema.sql
var schemaSQL string

// mostSlots limits the arithmetic of the trigger and the number of Kafka producers.
const mostSlots = 1024

// schema returns the SQL that creates the tables for that many slots. It can be run again.
func schema(slots int) string {
	return strings.ReplaceAll(schemaSQL, "{{slots}}", strconv.Itoa(slots)) +
		"\n-- The newest leader of each slot, for relays that publish with --fence=header.\n" + fence.Schema + ";\n"
}
