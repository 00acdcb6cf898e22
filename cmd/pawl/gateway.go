package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/gateway"
)

// startGateway starts the way to the providers on a free port of the loopback.
// It reaches them as this process's environment says (HTTPS_PROXY and the like),
// which no agent can change.
func startGateway(ctx context.Context, now func() time.Time, log zerolog.Logger) (*gateway.Gateway, error) {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, fmt.Errorf("the default transport is a %T", http.DefaultTransport)
	}
	transport = transport.Clone()
	transport.DisableCompression = true // tokens are read from what passes
	transport.MaxIdleConnsPerHost = 32
	g := gateway.New(gateway.Options{Now: now, Log: log, Transport: transport})
	// It is closed after the last attempt, not when the server begins to stop.
	if err := g.Listen(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	return g, nil
}

// self is the path of this program, which agents run as their test tool; without
// it they go without.
func self(log zerolog.Logger) string {
	path, err := os.Executable()
	if err != nil {
		log.Warn().Err(err).Msg("this program's own path is not known; agents get no test tool")
		return ""
	}
	return path
}
