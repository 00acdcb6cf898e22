package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pawlbot/pawl/config"
)

// Results of listing a provider's models.
var (
	ErrKey    = errors.New("the provider refuses the key")
	ErrNoList = errors.New("the provider lists no models")
)

// listPaths maps each protocol to the model list's path, relative to the provider's URL.
var listPaths = map[string]string{config.OpenAI: "/models", config.Anthropic: "/v1/models", config.Google: "/v1beta/models"}

// maxList limits the list in bytes.
const maxList = 8 << 20

// List lists a provider's models. That costs nothing and tests the key. The transport must not be nil.
func List(ctx context.Context, transport http.RoundTripper, p config.Provider) (names []string, err error) {
	address := p.Endpoint() + listPaths[p.Protocol] + map[string]string{config.Anthropic: "?limit=1000", config.Google: "?pageSize=1000"}[p.Protocol]
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header = outbound(http.Header{"Anthropic-Version": {"2023-06-01"}}, p)
	resp, err := transport.RoundTrip(req) // http.Client would send the key to redirects
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxList))
	if err != nil {
		return nil, err
	}
	if err := listError(resp, body); err != nil {
		return nil, err
	}
	var list struct {
		Data   []struct{ ID string }
		Models []struct{ Name string }
	}
	if json.Unmarshal(body, &list) != nil {
		return nil, ErrNoList
	}
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	for _, m := range list.Models {
		names = append(names, strings.TrimPrefix(m.Name, "models/"))
	}
	return names, nil
}

// listError returns why an answer has no list, or nil.
func listError(resp *http.Response, body []byte) error {
	wrongKey := fmt.Errorf("%w: it answers %s", ErrKey, resp.Status)
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return wrongKey
	case http.StatusBadRequest:
		if strings.Contains(string(body), "API_KEY_INVALID") { // Gemini's answer to a wrong key
			return wrongKey
		}
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return ErrNoList
	}
	return fmt.Errorf("it answers %s", resp.Status)
}
