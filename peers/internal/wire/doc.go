// Package wire is the protocol between members and log hosts: wire.proto, and the code generated from it.
package wire

// This needs protoc, protoc-gen-go and protoc-gen-go-grpc in the path, in the versions that the
// generated files name.
//
//go:generate protoc -I. --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative wire.proto
