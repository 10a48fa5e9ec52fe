//go:build !linux

package sentinel

import (
	"context"
	"errors"
	"log/slog"
	"os"
)

var errSystem = errors.New("a sentinel needs Linux 5.3: on other systems nothing proves the death of a process")

// Server takes registrations at a socket. It works on Linux only.
type Server struct{}

// Listen returns an error: this system has no pidfds.
func Listen(string, *Hub, *slog.Logger) (*Server, error) { return nil, errSystem }

// Serve returns an error. It cannot be reached, since Listen fails.
func (*Server) Serve(context.Context) error { return errSystem }

// Ask returns an error: this system has no sentinel.
func Ask(string, string, string) (Count, error) { return Count{}, errSystem }

func dial(string, Registration) (connection, Answer, error) { return nil, Answer{}, errSystem }

// Line would be a process's way to the guard of a command.
type Line struct{}

func newLine() (Line, *os.File, error) { return Line{}, nil, errSystem }

func (Line) pass(*os.File) error { return errSystem }
func (Line) close()              {}
