// Package advertised reads the addresses that members advertise.
package advertised

import (
	"net/url"
	"strings"
)

// URL returns the scheme, host and path of an address that a member advertises: host:port becomes http://host:port.
// It returns nil if requests cannot be sent there. Anybody who can write to the topic may have made the address up. An
// IPv6 zone can be any text, such as the end of an allowed name, and means nothing on another machine: URL accepts none.
func URL(advertise string) *url.URL {
	if !strings.Contains(advertise, "://") {
		advertise = "http://" + advertise
	}
	u, err := url.Parse(advertise)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.Contains(u.Host, "%") {
		return nil
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
}
