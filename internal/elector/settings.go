package elector

import (
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/elector/balance"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/elector/outside"
	"github.com/goneli/neli/internal/elector/report"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/stats"
	"github.com/goneli/neli/internal/elector/told"
)

// Package neli and its logs use these types and errors under this package's name.
type (
	Settings  = outside.Settings
	Desired   = outside.Desired
	Log       = outside.Log
	Address   = outside.Address
	Nominator = outside.Nominator
	Append    = told.Append
	Entry     = leases.Entry
	Member    = roster.Member
	Note      = report.Note
	Request   = request.Request
	Standing  = observe.Standing
	Watcher   = observe.Watcher
	Stats     = stats.Stats
)

// NewWatcher returns a Watcher that was told nothing.
func NewWatcher() *Watcher { return observe.NewWatcher() }

// History is about the largest number of records between two Snapshots.
const History = announce.History

// Errors for which package neli has public errors, and ErrDenied, the error of a Log.
var (
	ErrNotLeader      = balance.ErrNotLeader
	ErrLeadsAlready   = balance.ErrLeadsAlready
	ErrNotTransferred = balance.ErrNotTransferred
	ErrNoMember       = roster.ErrNoMember
	ErrNoAnswer       = request.ErrNoAnswer
	ErrRefused        = request.ErrRefused
	ErrNotDone        = request.ErrNotDone
	ErrVacant         = request.ErrVacant
	ErrDenied         = request.ErrDenied
)

// Harmless returns text from another process in a form that people can safely view.
func Harmless(s string) string { return roster.Harmless(s) }

// lookEvery is the longest time between two Ticks. It limits how late a hung application is noticed.
const lookEvery = stats.Rest
