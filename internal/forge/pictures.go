package forge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // these packages register decoders
	_ "image/jpeg"
	_ "image/png"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"
)

// Limits of an attempt's pictures. Models accept 5 MB and 8,000 pixels a side (Anthropic documentation, "Vision").
const (
	MaxPictures    = 8
	maxPicture     = 5_000_000
	maxPictureSide = 8000
	pictureTime    = 2 * TryTimeout // for all pictures together
)

// Picture is an attached picture.
type Picture struct {
	Node   string // comment, review, issue or pull request
	Format string // png, jpeg or gif
	Data   []byte
}

// Pictures reads up to MaxPictures pictures attached to the nodes. left counts the other pictures: surplus, on foreign
// hosts, too large, in other formats, or missing. GitHub renders pictures with URLs valid for minutes ("bodyHTML").
// Nodes edited since asked are skipped.
func (s Discussions) Pictures(ctx context.Context, repo Repo, nodes []string, asked time.Time) (all []Picture, left int, err error) {
	ctx, cancel := context.WithTimeout(ctx, pictureTime)
	defer cancel()
	var got struct {
		Nodes []*struct {
			ID     string    `json:"id"`
			HTML   string    `json:"bodyHTML"`
			Edited time.Time `json:"lastEditedAt"`
		} `json:"nodes"`
	}
	ask := "query($nodes:[ID!]!){nodes(ids:$nodes){id"
	for _, kind := range []string{"Issue", "PullRequest", "IssueComment", "PullRequestReview", "PullRequestReviewComment"} {
		ask += " ...on " + kind + "{bodyHTML lastEditedAt}"
	}
	ask += "}}"
	nodes = nodes[:min(len(nodes), 100)] // GitHub's limit
	err = s.client.graph(ctx, repo, request{reads: true}, ask, map[string]any{"nodes": nodes}, &got)
	if err != nil {
		return nil, 0, fmt.Errorf("read the pictures of the discussion: %w", err)
	}
	for _, n := range got.Nodes {
		if n == nil || !n.Edited.Before(asked) {
			continue
		}
		for _, address := range pictures(n.HTML) {
			if len(all) == MaxPictures {
				left++
				continue
			}
			p := Picture{Node: n.ID}
			err := s.readPicture(ctx, address, &p)
			if err != nil {
				left++
				continue
			}
			all = append(all, p)
		}
	}
	return all, left, nil
}

func pictures(page string) (addresses []string) {
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return nil
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "img" {
			continue
		}
		for _, a := range n.Attr {
			if a.Key == "src" && a.Namespace == "" {
				addresses = append(addresses, a.Val)
			}
		}
	}
	return addresses
}

// attachmentHosts are github.com's hosts for attachments.
var attachmentHosts = []string{
	"private-user-images.githubusercontent.com",
	"user-images.githubusercontent.com",
}

// keeps reports whether an address is on GitHub's attachment hosts. camo.githubusercontent.com proxies other sites
// and does not count.
func (s Discussions) keeps(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	api := s.client.api
	if api.Host == "api.github.com" {
		return u.Scheme == "https" && slices.Contains(attachmentHosts, u.Host)
	}
	if u.Scheme != api.Scheme {
		return false
	}
	return u.Host == api.Host || strings.HasSuffix(u.Host, "."+api.Host)
}

// readPicture reads a picture without credentials or redirects.
func (s Discussions) readPicture(ctx context.Context, address string, p *Picture) error {
	if !s.keeps(address) {
		return errors.New("the picture is not on GitHub's attachment hosts")
	}
	body, err := download(ctx, s.client.cfg.Transport, address)
	if err != nil {
		return err
	}
	defer body.Close()
	if p.Data, err = io.ReadAll(io.LimitReader(body, maxPicture+1)); err != nil {
		return err
	}
	head, format, err := image.DecodeConfig(bytes.NewReader(p.Data))
	if err != nil {
		return err
	}
	if len(p.Data) > maxPicture || max(head.Width, head.Height) > maxPictureSide {
		return errors.New("the picture is too large")
	}
	p.Format = format
	return nil
}
