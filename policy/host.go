package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// HostRule lets programs reach a name, or with Wild every name below it but not itself, at one port.
type HostRule struct {
	Name string // as CanonicalHost gives it
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
	if portErr != nil || port[0] == '0' { // a sign is no number to ParseUint
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

// Allows reports whether the rule lets a canonical name be reached at a port.
func (r HostRule) Allows(host, port string) bool {
	if port != r.Port {
		return false
	}
	if r.Wild {
		return strings.HasSuffix(host, "."+r.Name)
	}
	return host == r.Name
}

// In reports whether all that the rule allows is allowed by one of a list.
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

// CanonicalHost is the one form of the name of a host: lower case, ASCII, without a dot at its end. What is no such
// name is refused and not mended, since two programs would mend it differently: an address in any notation that some
// program knows, a NUL, a percent sign, a letter that looks like another.
func CanonicalHost(name string) (string, error) {
	const most = 253 // RFC 1035, 2.3.4, without the lengths around it
	host := strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' { // and nothing that Unicode has a lower case for, such as the Kelvin sign
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
	// addressForm matches a name that ends in a number, which is an address to the URL standard, "ends in a number checker".
	addressForm = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)$`)
)

// RefusedIn is an entry of RefusedHosts for what is no agent: a host with the key of the list that it is not on.
func RefusedIn(host, list string) string { return host + inList + list }

const inList = " in "

// RefusedBy parts entries of RefusedHosts by the lists that the hosts are not on.
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
