package gateway

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/secret"
)

// Relay returns a handler for other nodes' model calls at /PROVIDER/PATH. It adds the provider's key. The nodes count
// tokens and enforce limits, so the relay parses neither requests nor answers. providers returns the current settings.
func (g *Gateway) Relay(nodes []config.GatewayNode, providers func() *config.Server) http.Handler {
	refused := g.Log.Sample(&zerolog.BurstSampler{Burst: 10, Period: time.Minute})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		// net/http reads even a refused request to its end. Connections use the machine's clock.
		_ = rc.SetReadDeadline(time.Now().Add(headerTime))
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
		p, known := providers().Provider(name)
		node, allowed := nodeOf(r, nodes)
		if !allowed {
			w.Header().Set("Connection", "close")
			refused.Warn().Str("from", r.RemoteAddr).Str("provider", p.Name).Msg("refused a model call with an unknown token")
			refuse(p.Protocol, http.StatusUnauthorized, "the gateway does not know this token; correct gateway.token, or gateway.nodes on the gateway").write(w)
			return
		}
		call := relayed{gateway: g, node: node, provider: p, in: r}
		if !known || !call.find(strings.TrimPrefix(r.URL.EscapedPath(), "/"+name)) {
			refuse(p.Protocol, http.StatusNotFound, fmt.Sprintf("the gateway has no %s %s for agents", r.Method, r.URL.Path)).write(w)
			return
		}
		_ = rc.SetReadDeadline(time.Now().Add(bodyTime))
		if no := call.readBody(w); no != nil {
			no.write(w)
			return
		}
		_ = rc.SetReadDeadline(time.Time{})
		call.serve(w)
	})
}

// nodeOf returns the name of the node whose token a request carries.
func nodeOf(r *http.Request, nodes []config.GatewayNode) (name string, ok bool) {
	for _, shown := range tokensOf(r) {
		for _, n := range nodes {
			if subtle.ConstantTimeCompare([]byte(shown), []byte(n.Token.Reveal())) == 1 {
				return n.Name, true
			}
		}
	}
	return "", false
}

// relayed is another node's call.
type relayed struct {
	gateway  *Gateway
	node     string
	provider config.Provider
	in       *http.Request
	route    route
	body     []byte
}

// readBody reads the whole body, so that the call can be sent again if the provider closed an idle connection.
func (c *relayed) readBody(w http.ResponseWriter) *refusal {
	body, err := io.ReadAll(http.MaxBytesReader(w, c.in.Body, maxRequest))
	if err == nil {
		c.body = body
		return nil
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return refuse(c.provider.Protocol, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d MiB", maxRequest>>20))
	}
	return refuse(c.provider.Protocol, http.StatusBadRequest, "the body ended early")
}

// find sets the route of a path below the provider's URL. It returns false for paths that nodes never call.
func (c *relayed) find(path string) bool {
	c.route = route{protocol: c.provider.Protocol, method: c.in.Method, path: path}
	switch {
	case path == listPaths[c.route.protocol]:
		return c.route.method == http.MethodGet
	case c.route.protocol == config.Google:
		return c.route.method == http.MethodPost && geminiPath.MatchString(path)
	}
	for _, known := range routes {
		known.kind = "" // the relay reads no call
		if known == c.route {
			return true
		}
	}
	return false
}

func (c *relayed) serve(w http.ResponseWriter) {
	target, err := c.route.target(c.provider.BaseURL, c.in.URL.Query())
	if err != nil {
		refuse(c.provider.Protocol, http.StatusBadGateway, "the gateway cannot reach the provider: correct base_url there").write(w)
		return
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL, r.Out.Host, r.Out.Header = target, "", outbound(c.in.Header, c.provider)
			r.Out.TransferEncoding, r.Out.Trailer = nil, nil
		},
		Transport:     roundTrip(c.send),
		ErrorHandler:  c.failed,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	proxy.ServeHTTP(w, c.in)
}

// send calls the provider. Like call.exchange, it passes on allowed headers only. It masks the key.
func (c *relayed) send(out *http.Request) (*http.Response, error) {
	out = out.WithContext(c.in.Context()) // ReverseProxy's context would forward provisional answers
	out.ContentLength = int64(len(c.body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil }
	out.Body, _ = out.GetBody()
	if len(c.body) == 0 {
		out.Body = http.NoBody
	}
	resp, err := c.gateway.Transport.RoundTrip(out)
	if err == nil {
		err = final(resp)
	}
	if err == nil {
		err = plainBody(resp)
	}
	if err != nil {
		return nil, err
	}
	c.gateway.Log.Debug().Str("node", c.node).Str("provider", c.provider.Name).Int("status", resp.StatusCode).Msg("relayed a model call")
	key := c.provider.Key.Reveal()
	return &http.Response{
		StatusCode: resp.StatusCode,
		Header:     inbound(resp.Header, key),
		Body:       bodyOf(secret.MaskReader(resp.Body, key), resp.Body),
	}, nil
}

// unreachableHeader marks the relay's own answers for an unreachable provider. Providers cannot set it.
const unreachableHeader = "Pawl-Unreachable"

// relayError returns the relay's error if the relay could not reach the provider, and closes the answer.
func relayError(resp *http.Response) error {
	message := resp.Header.Get(unreachableHeader)
	if message == "" {
		return nil
	}
	resp.Body.Close()
	return errors.New("the gateway reports: " + message)
}

func (c *relayed) failed(w http.ResponseWriter, out *http.Request, err error) {
	if errors.Is(out.Context().Err(), context.Canceled) { // the node left
		return
	}
	message := secret.Mask(err.Error(), c.provider.Key.Reveal())
	c.gateway.Log.Warn().Str("node", c.node).Str("provider", c.provider.Name).Str("error", message).Msg("the provider cannot be reached")
	w.Header().Set(unreachableHeader, render.Line(message, 300))
	refuse(c.provider.Protocol, http.StatusBadGateway, "the gateway cannot reach the provider: "+message).write(w)
}
