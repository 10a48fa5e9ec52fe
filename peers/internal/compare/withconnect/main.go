// Command withconnect has a connect handler and client in addition.
package main

import (
	"context"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/emptypb"
)

func main() {
	// The messages do not matter: the runtime for them is what has a size.
	handler := connect.NewBidiStreamHandler("/x", func(context.Context, *connect.BidiStream[emptypb.Empty, emptypb.Empty]) error { return nil })
	http.Handle("/x", handler)
	stream := connect.NewClient[emptypb.Empty, emptypb.Empty](http.DefaultClient, "http://localhost").CallBidiStream(context.Background())
	defer stream.CloseRequest()
	panic(http.ListenAndServe(":0", nil))
}
