package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// HostRule lets programs reach a host at one port. With Wild it is every host below the name, but not the name
// itself.
type HostRule struct {
	Name string // in the form of CanonicalHost
	Wild bool
	Port string // decimal
}

// httpsPort is the port of a rule that names none.
const httpsPort = "443"

// UnmarshalText reads NAME, NAME:PORT or *.SUFFIX:PORT.
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

// Allows reports whether the rule lets programs reach a canonical host at a port.
func (r HostRule) Allows(host, port string) bool {
	if port != r.Port {
		return false
	}
	if r.Wild {
		return strings.HasSuffix(host, "."+r.Name)
	}
	return host == r.Name
}

// In reports whether one rule of a list allows all that this rule allows.
func (r HostRule) In(list []HostRule) bool {
	return slices.ContainsFunc(list, func(other HostRule) bool { return other.covers(r) })
}

// covers reports whether the rule allows all that another one allows.
func (r HostRule) covers(other HostRule) bool {
	if r == other {
		return true
	}
	if other.Wild && !r.Wild {
		return false
	}
	return r.Allows(other.Name, other.Port)
}

// CanonicalHost is the canonical form of a host's name: lower case, ASCII, no final dot. It refuses other names
// instead of correcting them, since two programs would correct them differently: addresses in any notation, a NUL,
// a percent sign, a letter that looks like another.
func CanonicalHost(name string) (string, error) {
	const most = 253 // RFC 1035, 2.3.4, without the length octets
	host := strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' { // and not what Unicode lowers to ASCII, such as the Kelvin sign
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
	// addressForm matches a name that ends in a number, which the URL standard reads as an address ("ends in a
	// number checker").
	addressForm = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)$`)
)

// RefusedIn is an entry of RefusedHosts for other programs than the agent: a host, and the key of the list that
// lacks it.
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
