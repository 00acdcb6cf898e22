package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/google/go-github/v60/github"
)

// NewApp is an App that GitHub made from a manifest, with its secrets: who has
// them is the App.
type NewApp struct {
	ID            int64
	Slug          string
	Name          string
	Owner         string
	HTMLURL       string
	WebhookSecret string
	PrivateKey    string // PEM
}

// codePattern is what a code may look like; GitHub shows 40 hexadecimal digits.
// Anything else would change the path of the request.
var codePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// ValidCode reports whether a text can be the code of a manifest.
func ValidCode(code string) bool { return codePattern.MatchString(code) }

// conversionPauses are between the tries of a conversion.
func conversionPauses() []time.Duration { return []time.Duration{time.Second, 3 * time.Second} }

// ConvertManifest exchanges the code that GitHub gave for a manifest for the App
// that it made (docs.github.com, "Registering a GitHub App from a manifest"). It
// needs no credentials: the code is one. It is good once and for an hour, so a
// request whose answer was lost may have used it up; where GitHub did not answer
// properly, it is tried three times all the same.
func ConvertManifest(ctx context.Context, apiURL, userAgent, code string) (NewApp, error) {
	api, err := baseURL("the API's address", apiURL)
	if err != nil {
		return NewApp{}, err
	}
	if !ValidCode(code) {
		return NewApp{}, errors.New("convert the manifest: the code is none that GitHub gives")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	pauses := conversionPauses()
	for try := 0; ; try++ {
		w := &wire{base: transport, cache: new(cache), sent: func() {}}
		app, err := convert(ctx, w, api, userAgent, code)
		switch {
		case err == nil:
			return app, nil
		case ctx.Err() != nil:
			return NewApp{}, fmt.Errorf("convert the manifest: %w", ctx.Err())
		case judge(newAnswer(w, err)) != unknown || try == len(pauses):
			return NewApp{}, conversionError(w, err)
		}
		if err := sleep(ctx, pauses[try]); err != nil {
			return NewApp{}, fmt.Errorf("convert the manifest: %w", err)
		}
	}
}

func convert(ctx context.Context, w *wire, api *url.URL, userAgent, code string) (NewApp, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	gh := github.NewClient(&http.Client{Transport: w, CheckRedirect: follow})
	gh.BaseURL, gh.UserAgent = api, userAgent
	got, _, err := gh.Apps.CompleteAppManifest(ctx, code)
	if err != nil {
		return NewApp{}, err
	}
	if got.GetID() <= 0 || got.GetPEM() == "" {
		return NewApp{}, errEmptyAnswer
	}
	return NewApp{
		ID: got.GetID(), Slug: got.GetSlug(), Name: got.GetName(), Owner: got.GetOwner().GetLogin(), HTMLURL: got.GetHTMLURL(),
		WebhookSecret: got.GetWebhookSecret(), PrivateKey: got.GetPEM(),
	}, nil
}

// conversionError says what became of the code, which is never shown: it is a
// credential as long as it is good.
func conversionError(w *wire, err error) error {
	a := newAnswer(w, err)
	hint, kind := explain(a)
	if a.status == http.StatusNotFound || a.status == http.StatusUnprocessableEntity {
		hint = "the code was used before or is older than an hour"
	}
	e := &Error{Method: http.MethodPost, Path: "/app-manifests/{code}/conversions", Status: a.status, Message: a.message, Hint: hint, Kind: kind}
	var transport *url.Error
	switch {
	case errors.As(err, &transport):
		e.Cause = transport.Err // without its address, which holds the code
	case a.status < 300:
		e.Cause = err
	}
	return e
}
