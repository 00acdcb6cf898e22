// Command dispatcher answers webhooks with go-githubapp's dispatcher and its in-memory scheduler, for make bench. It
// checks signatures, keeps deliveries only in memory, and logs warnings. Arguments: address, secret, and the
// handler's work: "nothing", or "parse" to read the comment.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/google/go-github/v60/github"
	"github.com/palantir/go-githubapp/githubapp"
	"github.com/rs/zerolog"
)

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: dispatcher ADDRESS SECRET nothing|parse")
	}
	log := zerolog.New(os.Stderr).Level(zerolog.WarnLevel).With().Timestamp().Logger()
	hook := githubapp.NewEventDispatcher([]githubapp.EventHandler{comments{parse: args[2] == "parse"}}, args[1],
		githubapp.WithScheduler(githubapp.AsyncScheduler()))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /api/github/hook", func(w http.ResponseWriter, r *http.Request) {
		hook.ServeHTTP(w, r.WithContext(log.WithContext(r.Context())))
	})
	return http.ListenAndServe(args[0], mux)
}

type comments struct{ parse bool }

func (comments) Handles() []string { return []string{"issue_comment"} }

func (c comments) Handle(_ context.Context, _, _ string, payload []byte) error {
	if !c.parse {
		return nil
	}
	var event github.IssueCommentEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return err
	}
	if strings.HasPrefix(event.GetComment().GetBody(), "/pawl") {
		return errors.New("the bench sends no commands")
	}
	return nil
}
