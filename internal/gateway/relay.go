package gateway

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"strings"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/secret"
)

// Relay returns a handler for other nodes' model calls at /PROVIDER/PATH. It adds the provider's key. The nodes count
// tokens and enforce limits, so the relay reads neither requests nor answers. providers returns the current ones.
func (g *Gateway) Relay(nodes []config.GatewayNode, providers func() *config.Server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
		p, known := providers().Provider(name)
		node, allowed := nodeOf(r, nodes)
		if !allowed {
			g.Log.Warn().Str("from", r.RemoteAddr).Str("provider", p.Name).Msg("refused a model call with an unknown token")
			refuse(p.Protocol, http.StatusUnauthorized, "the gateway does not know this token; correct gateway.token, or gateway.nodes on the gateway").write(w)
			return
		}
		call := relayed{gateway: g, node: node, provider: p, in: r}
		if !known || !call.find(strings.TrimPrefix(r.URL.EscapedPath(), "/"+name)) {
			refuse(p.Protocol, http.StatusNotFound, fmt.Sprintf("the gateway has no %s %s for agents", r.Method, r.URL.Path)).write(w)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
		call.serve(w)
	})
}

// nodeOf returns the name of the node with a request's token.
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

// relayed is a call of another node.
type relayed struct {
	gateway  *Gateway
	node     string
	provider config.Provider
	in       *http.Request
	route    route
}

// find sets the route of a path below the provider's URL. It returns false for what a node never calls.
func (c *relayed) find(path string) bool {
	if c.provider.Protocol == config.Google {
		c.route.path = path
		if path == listPaths[config.Google] {
			return c.in.Method == http.MethodGet
		}
		return c.in.Method == http.MethodPost && geminiPath.MatchString(path)
	}
	if path == listPaths[c.provider.Protocol] && c.in.Method == http.MethodGet {
		c.route.path = path
		return true
	}
	for _, known := range routes {
		if known.protocol == c.provider.Protocol && known.path == path && known.method == c.in.Method {
			c.route = known
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
		},
		Transport:     roundTrip(c.send),
		ErrorHandler:  c.failed,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	proxy.ServeHTTP(w, c.in)
}

// send calls the provider. Like call.send it drops provisional answers, other headers and the key.
func (c *relayed) send(out *http.Request) (*http.Response, error) {
	resp, err := c.gateway.Transport.RoundTrip(out.WithContext(c.in.Context()))
	if err != nil {
		return nil, err
	}
	if err := plainBody(resp); err != nil {
		return nil, err
	}
	key := c.provider.Key.Reveal()
	resp.Header = inbound(resp.Header, key)
	resp.Body = bodyOf(secret.MaskReader(resp.Body, key), resp.Body)
	return resp, nil
}

func (c *relayed) failed(w http.ResponseWriter, out *http.Request, err error) {
	if errors.Is(out.Context().Err(), context.Canceled) { // the node left
		return
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		refuse(c.provider.Protocol, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d MiB", maxRequest>>20)).write(w)
		return
	}
	message := secret.Mask(err.Error(), c.provider.Key.Reveal())
	c.gateway.Log.Warn().Str("node", c.node).Str("provider", c.provider.Name).Str("error", message).Msg("the provider cannot be reached")
	refuse(c.provider.Protocol, http.StatusBadGateway, "the gateway cannot reach the provider: "+message).write(w)
}
