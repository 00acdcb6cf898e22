package server

import (
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

	"github.com/pawlbot/pawl/config"
)

const (
	// maxRelayConns limits the connections of all nodes. HTTP/2 needs one per node; 1,024 is our choice.
	maxRelayConns   = 1024
	relayHeaderTime = 10 * time.Second
	relayIdleTime   = 2 * time.Minute
)

// relay answers other nodes' model calls with the providers of the configuration in force.
func (s *Server) relay() *http.Server {
	return &http.Server{
		Handler:           s.solver.Env.Gateway.Relay(s.cfg.Gateway.Nodes, s.solver.Env.Current),
		ReadHeaderTimeout: relayHeaderTime,
		IdleTimeout:       relayIdleTime,
		ErrorLog:          log.New(s.log, "", 0),
	}
}

// listenForNodes opens the gateway's listener, with TLS if a certificate is given. Each connection reads the certificate
// again, so that it can be renewed without a restart.
func (s *Server) listenForNodes(g config.Gateway) (net.Listener, error) {
	load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(g.CertFile, g.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the gateway's certificate: %w (gateway.cert_file and key_file must name a certificate and its key in PEM)", err)
		}
		return &pair, nil
	}
	if g.CertFile != "" {
		if _, err := load(nil); err != nil {
			return nil, err
		}
	}
	l, err := Listen(gatewayKey, g.Address)
	if err != nil {
		return nil, err
	}
	s.log.Info().Str("address", l.Addr().String()).Msg("relays model calls of other servers")
	l = netutil.LimitListener(l, maxRelayConns)
	if g.CertFile == "" {
		return l, nil
	}
	return tls.NewListener(l, &tls.Config{GetCertificate: load, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}), nil
}
