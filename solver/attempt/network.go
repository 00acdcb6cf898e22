package attempt

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlbot/pawl/internal/egress"
	"github.com/pawlbot/pawl/internal/gateway"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/policy"
)

// Where programs with a network of their own find the gateway and the proxy: ports that IANA gave to nobody and from
// which the kernel takes none for a connection.
const (
	gatewayPort = 29401
	proxyPort   = 29402
)

// listen has a session answer its agent, and gives the URL.
func (e *Env) listen(session *gateway.Session) (url string, err error) {
	if e.Sandbox.Networks() { // wall serves it
		return "http://127.0.0.1:" + strconv.Itoa(gatewayPort), nil
	}
	return session.Listen()
}

// wall gives a program a network of its own, with the gateway where there is a session and a proxy for the hosts of a
// list; where names the list's key. The function that it returns is called once the program has ended. Where networks
// are open it changes nothing.
func wall(a *Attempt, spec *sandbox.Spec, session *gateway.Session, list []policy.HostRule, where string) (end func() egress.Traffic) {
	if !a.Sandbox.Networks() {
		return func() egress.Traffic { return egress.Traffic{} }
	}
	proxy := egress.New(egress.Options{Allow: list, Private: a.Config.Network.Private, Where: where, Download: int64(a.Config.Network.Download)})
	ports, serve := []int{proxyPort}, []func(net.Listener){proxy.Serve}
	if session != nil {
		ports, serve = append(ports, gatewayPort), append(serve, session.Serve)
	}
	spec.Env = egress.Clients(strconv.Itoa(proxyPort), spec.Env)
	spec.Network = &sandbox.Network{Ports: ports, Serve: func(listeners []net.Listener) {
		for i, l := range listeners {
			go serve[i](l)
		}
	}}
	return proxy.Close
}

// refusedLine tells what was refused, in the output of a command.
func refusedLine(hosts []string, where string) string {
	return fmt.Sprintf("[Pawl refused: %s; the operator can allow it in %s]\n", strings.Join(hosts, ", "), where)
}

// noteRefused notes in a receipt what a program that is no agent asked for in vain.
func noteRefused(r *policy.Receipt, hosts []string, where string) {
	for _, host := range hosts {
		if entry := policy.RefusedIn(host, where); !slices.Contains(r.RefusedHosts, entry) {
			r.RefusedHosts = append(r.RefusedHosts, entry)
		}
	}
}
