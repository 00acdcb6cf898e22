// Package egress is the only way out of a sandbox with its own network: an HTTP proxy on the host that lets
// programs reach the names on a list, at the listed ports, and nothing else.
//
// The proxy checks and dials a name in its canonical form, and resolves the name only after the check. It checks each
// address right before it connects. It refuses private networks, this machine and a cloud's metadata service, unless
// the operator names the network. A CONNECT tunnel must carry TLS for the name in CONNECT. Plain HTTP is checked per
// request.
//
// A tunnel hides the method, path and Host header. So programs that may reach a host may also upload to it, and to all
// other hosts behind the same front end (domain fronting).
//
//	../../policy/host.go  names and rules
//	egress.go             refusals and traffic
//	address.go            refused addresses
//	tunnel.go             the server name in TLS
//	clients.go            programs' proxy variables
package egress
