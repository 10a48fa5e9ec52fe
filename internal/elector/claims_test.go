package elector

import "github.com/goneli/neli/internal/lease"

func session(process string) lease.Session { return lease.Session{Process: process, N: 1} }
