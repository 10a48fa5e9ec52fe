// Command withgrpc has a grpc-go server in addition.
package main

import (
	"net"
	"net/http"

	"google.golang.org/grpc"

	"github.com/goneli/neli/peers/internal/wire"
)

func main() {
	s := grpc.NewServer()
	wire.RegisterSmallLogServer(s, wire.UnimplementedSmallLogServer{})
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		panic(err)
	}
	go func() { panic(s.Serve(l)) }()
	conn, err := grpc.NewClient(l.Addr().String())
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	panic(http.ListenAndServe(":0", nil))
}
