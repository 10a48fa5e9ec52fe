// Package proxy cuts single members of a test off from Kafka.
//
// A proxy in front of Kafka's bootstrap address would not be enough, since clients follow the addresses that
// brokers advertise. So each broker gets additional listeners ([kafkatest.Options].ProxiedListeners), and each of
// them advertises the address of a proxy. A client that starts from one proxy's [Proxy.Bootstrap] never sees
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
//   - CutOff(Upstream, Downstream or Both): silence. Everything sent is dropped. Connections stay open, and new
//     ones are accepted and silent, too. Restore closes every connection that was open meanwhile, because bytes
//     are missing in it, and the client connects again. Data in flight is lost.
//   - Hold: silence, too, but everything sent is kept. Restore delivers it late and in order, even if the sender is
//     long gone, as a network does with a retransmitted request. Connections stay usable. CutOff or Close instead
//     of Restore drop the kept data.
//   - CutOff(Refuse): connections are closed, and new ones refused.
//
// github.com/Shopify/toxiproxy, used as a library, does the proxying, with a toxic of our own. While a broker is
// down, connections to it are accepted and closed at once.
//
// Silence does not hide the end of a connection: the broker learns that a client has closed it, and vice versa.
// Under Hold this comes after the kept data.
package proxy
