package nelihttp_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelihttp"
	"github.com/goneli/neli/nelitest"
)

// A load balancer that sends everything to the leader asks /neli/leader. An operator opens /neli/, and
// can make this process step down if the request comes through the operators' proxy.
func ExampleHandler() {
	n, err := neli.New(neli.Config{
		LeaderGroupID:    "invoices",
		Advertise:        "10.0.0.7:8080", // where others reach it
		HeartbeatTimeout: 2 * time.Second,
		Provider:         nelitest.NewBroker(nelitest.Options{}).Provider("a"), // in production: KafkaConfig
	})
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close()

	mux := http.NewServeMux()
	mux.Handle("/neli/", http.StripPrefix("/neli", nelihttp.Handler(n,
		nelihttp.WithURL(func(h neli.Holder) string { return "http://" + h.Advertise + "/neli/" }),
		nelihttp.WithControl(func(r *http.Request) bool { return r.Header.Get("X-Operator") != "" }),
	)))
	server := httptest.NewServer(mux) // in production: an http.Server on an internal port
	defer server.Close()

	check := func() {
		resp, err := http.Head(server.URL + "/neli/leader")
		if err != nil {
			log.Fatal(err)
		}
		_ = resp.Body.Close()
		fmt.Println("HEAD /neli/leader:", resp.Status)
	}
	check()
	if _, err := n.Pulse(time.Minute); err != nil { // returns when this process leads
		log.Fatal(err)
	}
	check()
	// Output:
	// HEAD /neli/leader: 503 Service Unavailable
	// HEAD /neli/leader: 200 OK
}
