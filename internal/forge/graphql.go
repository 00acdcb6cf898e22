package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/pawlbot/pawl/internal/text"
)

// graphRoute is the one address of the GraphQL API.
const graphRoute = "/graphql"

// Discussions reads by the GraphQL API what people said; its Client is required.
type Discussions struct{ *Client }

// ask asks the GraphQL API about a repository, whose owner and name the query gets as $owner and $name, and reads
// its data into a value, also where GitHub names an error beside it.
func (c Discussions) ask(ctx context.Context, repo Repo, query string, variables map[string]any, into any) error {
	variables["owner"], variables["name"] = repo.Owner, repo.Name
	return graph(ctx, c.Client, repo, request{reads: true, once: true}, query, variables, into)
}

// graph sends a query or a mutation that can be done again without harm.
func graph(ctx context.Context, c *Client, repo Repo, r request, query string, variables map[string]any, into any) error {
	var got struct {
		Data   json.RawMessage `json:"data"`
		Errors []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	r.method, r.route, r.repo, r.body = http.MethodPost, graphRoute, repo, map[string]any{"query": query, "variables": variables}
	resp, err := c.do(ctx, r, &got)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(got.Data, into); err != nil && len(got.Errors) == 0 {
		return fmt.Errorf("POST %s: %w", graphRoute, err)
	}
	if len(got.Errors) == 0 {
		return nil
	}
	first := got.Errors[0]
	err = fmt.Errorf("POST %s: %s", graphRoute, text.Redact(clip(first.Message, 1000)))
	switch first.Type {
	case "RATE_LIMITED":
		until, _ := resetTime(resp.Header)
		return &RateLimited{Method: r.method, Path: graphRoute, Until: until}
	case "NOT_FOUND":
		return errors.Join(err, ErrNotFound)
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		return errors.Join(err, ErrForbidden)
	}
	return errors.Join(err, ErrInvalid)
}

// graphAddress is where the GraphQL API of a REST API is: https://api.github.com/graphql, and on an Enterprise Server
// https://HOST/api/graphql beside https://HOST/api/v3.
func graphAddress(api string) string {
	api = strings.TrimSuffix(api, "/")
	return strings.TrimSuffix(api, "/v3") + graphRoute
}
