package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// HostRule allows a host at one port. If Wild, it allows all subdomains but not the name itself.
type HostRule struct {
	Name string // in CanonicalHost's form
	Wild bool
	Port string // decimal
}

const httpsPort = "443"

// UnmarshalText reads NAME or *.SUFFIX, optionally with :PORT. The default is port 443.
func (r *HostRule) UnmarshalText(text []byte) error {
	name, port, ok := strings.Cut(string(text), ":")
	if !ok {
		port = httpsPort
	}
	suffix, wild := strings.CutPrefix(name, "*.")
	host, err := CanonicalHost(suffix)
	_, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("%w; write it like registry.npmjs.org:443 or *.example.org:443", err)
	}
	if portErr != nil || port[0] == '0' { // ParseUint accepts a sign
		return errors.New("names no port between 1 and 65535; write it like registry.npmjs.org:443")
	}
	*r = HostRule{host, wild, port}
	return nil
}

func (r HostRule) String() string {
	if r.Wild {
		return "*." + r.Name + ":" + r.Port
	}
	return r.Name + ":" + r.Port
}

// Allows reports whether the rule allows a canonical host at a port.
func (r HostRule) Allows(host, port string) bool {
	if port != r.Port {
		return false
	}
	if r.Wild {
		return strings.HasSuffix(host, "."+r.Name)
	}
	return host == r.Name
}

// In reports whether one rule of a list covers this rule.
func (r HostRule) In(list []HostRule) bool {
	return slices.ContainsFunc(list, func(other HostRule) bool { return other.covers(r) })
}

// covers reports whether the rule allows everything that another rule allows.
func (r HostRule) covers(other HostRule) bool {
	if r == other {
		return true
	}
	if other.Wild && !r.Wild {
		return false
	}
	return r.Allows(other.Name, other.Port)
}

// CanonicalHost returns a host's name in lower-case ASCII. It refuses names that two programs could read differently:
// any address, and any final dot, NUL, percent sign or look-alike letter.
func CanonicalHost(name string) (string, error) {
	const most = 253 // RFC 1035, 2.3.4, without the length octets
	host := strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' { // not strings.ToLower: it maps the Kelvin sign to k
			r += 'a' - 'A'
		}
		return r
	}, name)
	if len(host) > most || !hostForm.MatchString(host) {
		return "", errors.New("is not the name of a host in ASCII letters, digits and dashes")
	}
	if addressForm.MatchString(host) {
		return "", errors.New("is an address; only names are let through")
	}
	return host, nil
}

var (
	hostForm = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$`)
	// addressForm matches a name that ends in a number: the URL standard reads it as an address.
	addressForm = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)$`)
)

// RefusedIn formats an entry of RefusedHosts: a host, and the configuration key of the list that lacks it.
func RefusedIn(host, list string) string { return host + inList + list }

const inList = " in "

// RefusedBy groups entries of RefusedHosts by the lists that lack the hosts.
func RefusedBy(hosts []string) (by map[string][]string) {
	by = map[string][]string{}
	for _, entry := range hosts {
		host, list := entry, "network.agent"
		if at := strings.LastIndex(entry, inList+"network."); at >= 0 {
			host, list = entry[:at], entry[at+len(inList):]
		}
		by[list] = append(by[list], host)
	}
	return by
}
