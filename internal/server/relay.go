package server

import (
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/web"
)

const (
	relayHeaderTime = 10 * time.Second
	relayIdleTime   = 2 * time.Minute
	relayMaxHeader  = 64 << 10 // bytes
)

// relay returns a server that answers other nodes' model calls, with the providers of the configuration in force.
func (s *Server) relay() *http.Server {
	return &http.Server{
		Handler:           s.solver.Env.Gateway.Relay(s.cfg.Gateway.Nodes, s.solver.Env.Current),
		ReadHeaderTimeout: relayHeaderTime,
		IdleTimeout:       relayIdleTime,
		MaxHeaderBytes:    relayMaxHeader,
		ErrorLog:          log.New(s.log, "", 0),
	}
}

// listenForNodes opens the gateway's listener, with TLS if a certificate is given.
func (s *Server) listenForNodes(g config.Gateway) (net.Listener, error) {
	pair := &certificate{certFile: g.CertFile, keyFile: g.KeyFile, log: s.log}
	if g.CertFile != "" {
		if err := pair.read(); err != nil {
			return nil, err
		}
	}
	l, err := Listen(gatewayKey, g.Address)
	if err != nil {
		return nil, err
	}
	s.log.Info().Str("address", l.Addr().String()).Msg("relays model calls of other servers")
	l = web.Listen(l)
	if g.CertFile == "" {
		return l, nil
	}
	return tls.NewListener(l, &tls.Config{GetCertificate: pair.get, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}), nil
}

// certificate is a TLS certificate that can be renewed without a restart.
type certificate struct {
	certFile, keyFile string
	log               zerolog.Logger
	last              atomic.Pointer[tls.Certificate]
}

func (c *certificate) read() error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("read the gateway's certificate: %w (gateway.cert_file and gateway.key_file must name a certificate and its key in PEM)", err)
	}
	c.last.Store(&pair)
	return nil
}

// get reads the files for each connection. If they do not match, as during a renewal, it returns the last certificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if err := c.read(); err != nil {
		c.log.Warn().Err(err).Msg("the previous certificate stays in use")
	}
	return c.last.Load(), nil
}
