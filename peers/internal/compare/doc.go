// Package compare is why log hosts speak gRPC: what an append and its push take over
// loopback with grpc-go, with connect, and with net/http and JSON, and what each adds to a
// program. It is a module of its own, so that nobody else depends on what was not chosen.
//
//	go test -bench . -benchtime 5000x .
//	for p in nothing withgrpc withconnect; do go build -o /tmp/$p ./$p; ls -l /tmp/$p; done
package compare
