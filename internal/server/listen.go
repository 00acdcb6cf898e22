package server

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/pawlbot/pawl/config"
)

// ListenError means that Pawl cannot listen on an address.
type ListenError struct {
	Key     string // configuration key
	Address string
	Err     error
}

func (e *ListenError) Error() string { return e.Problem() + "; " + e.Hint() }

func (e *ListenError) Unwrap() error { return e.Err }

func (e *ListenError) Problem() string {
	if errors.Is(e.Err, syscall.EADDRINUSE) {
		return fmt.Sprintf("%s: another program listens on %s already", e.Key, e.Address)
	}
	return fmt.Sprintf("%s: %v", e.Key, e.Err)
}

// Hint tells the operator what to do.
func (e *ListenError) Hint() string {
	other := "set " + e.Key + " in the configuration to another address"
	if e.Key == addressKey {
		other += " (or give pawl serve --listen ADDRESS)"
	}
	_, port, _ := net.SplitHostPort(e.Address) // a malformed address gets the last hint
	switch {
	case errors.Is(e.Err, syscall.EADDRINUSE):
		return fmt.Sprintf("end that program (ss -ltnp 'sport = :%s' names it), or %s", port, other)
	case errors.Is(e.Err, syscall.EACCES):
		return other + " with a port above 1023; for a lower one Pawl needs CAP_NET_BIND_SERVICE or a proxy in front"
	case errors.Is(e.Err, syscall.EADDRNOTAVAIL):
		return other + " that this machine has (ip address lists them)"
	}
	return other
}

// Configuration keys of addresses.
const (
	addressKey = "server.address"
	pagesKey   = "server.pages"
	gatewayKey = "gateway.address"
)

// Listen opens a listener. Errors are *ListenError.
func Listen(key, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, &ListenError{Key: key, Address: address, Err: err}
	}
	return l, nil
}

// listen opens the pages' listener, and the webhooks' and the gateway's if the configuration gives an address.
func (s *Server) listen() (err error) {
	if s.cfg.HTTP.Address != "" {
		if s.listener, err = Listen(addressKey, s.cfg.HTTP.Address); err != nil {
			return err
		}
	}
	if s.cfg.Gateway.Address != "" {
		if s.relayListener, err = s.listenForNodes(s.cfg.Gateway); err != nil {
			return err
		}
	}
	address := s.cfg.HTTP.Pages
	if address == "" {
		s.pagesListener, err = net.Listen("tcp", config.DefaultPages)
		if err == nil {
			return nil
		}
		// Another server on this machine has the default port, so use a free one.
		address = "127.0.0.1:0"
	}
	s.pagesListener, err = Listen(pagesKey, address)
	return err
}
