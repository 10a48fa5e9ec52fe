package main

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/goneli/neli/fence"
)

//go:embed schema.sql
var schemaSQL string

// mostSlots keeps the arithmetic of the trigger, and the number of Kafka producers, in bounds.
const mostSlots = 1024

// schema is what makes the tables for so many slots. It can be run again.
func schema(slots int) string {
	return strings.ReplaceAll(schemaSQL, "{{slots}}", strconv.Itoa(slots)) +
		"\n-- The newest leader of each slot, for relays that publish with --fence=header.\n" + fence.Schema + ";\n"
}
