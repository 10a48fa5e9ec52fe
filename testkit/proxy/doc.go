// Package proxy cuts one member of a test off from Kafka, and not the others.
//
// A proxy in front of Kafka's bootstrap address would not do: clients follow the
// addresses that brokers advertise. So each broker gets additional listeners
// ([kafkatest.Options].ProxiedListeners), each of which advertises the address of
// a proxy. A client that starts from one proxy's [Proxy.Bootstrap] never sees
// another address.
//
//	cluster := kafkatest.Run(t, kafkatest.Options{ProxiedListeners: 2})
//	p, err := proxy.New(cluster, 0)
//	if err != nil { … }
//	defer p.Close()
//	member := start(p.Bootstrap())
//	p.CutOff(proxy.Both)     // silence: nothing passes, nothing is closed
//	p.Restore()
//
// # Three ways to be cut off
//
//   - CutOff(Upstream, Downstream or Both): silence. What is sent is dropped,
//     connections stay open, new ones are accepted and are as silent. Restore
//     closes every connection that lived through it, because bytes are missing in
//     it; the client connects anew. What was under way is lost.
//   - Hold: silence too, but what is sent is kept, and Restore delivers it late
//     and in order, even when the sender is long gone: what the network does to a
//     retransmitted request. Connections live on. CutOff or Close instead of
//     Restore drop what was kept.
//   - CutOff(Refuse): connections are closed and new ones refused.
//
// The proxying itself is done by github.com/Shopify/toxiproxy, used as a library,
// with a toxic of our own. While a broker is down, connections to it are accepted
// and closed at once.
//
// Ends of connections are not hidden by silence: the broker learns that a client
// has closed a connection, and the reverse. Under Hold the news waits its turn.
package proxy
