package kafkatest

import (
	"fmt"
	"strings"
)

// Kerberos is what a broker needs of a realm.
type Kerberos struct {
	Config    string // file: krb5.conf, which names the realm and its key distribution centre
	Keytab    string // file: the key of Principal
	Principal string // service/host@REALM; the host is the one that clients connect to, such as 127.0.0.1
}

// KerberosBootstrap returns the addresses for logins with Kerberos, separated by commas, or "" unless the cluster
// was started with Kerberos.
func (c *Cluster) KerberosBootstrap() string {
	if c.opts.Kerberos == nil {
		return ""
	}
	return c.bootstrap(kerberosListener)
}

// properties returns the settings of the listener for Kerberos.
func (k *Kerberos) properties() map[string]string {
	const listener = "listener.name.kerberos."
	service, _, _ := strings.Cut(k.Principal, "/")
	return map[string]string{
		listener + "sasl.enabled.mechanisms":    "GSSAPI",
		listener + "sasl.kerberos.service.name": service,
		listener + "gssapi.sasl.jaas.config": fmt.Sprintf("com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "+
			"keyTab=%q principal=%q;", k.Keytab, k.Principal),
	}
}
