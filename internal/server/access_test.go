package server

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/web"
)

const (
	testRepo = "acme/widgets"
	writer   = "ada"     // may write, id 1001
	reader   = "mallory" // may read, id 1002
)

// newWorld returns a fake GitHub with one repository where the App is installed.
func newWorld(t *testing.T) *fakegithub.Server {
	t.Helper()
	world, err := fakegithub.New(fakegithub.Options{AppID: 1, Slug: "pawl", WebhookSecret: "a-secret-of-a-test-0123456789"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { world.Close() })
	err = errors.Join(
		world.AddRepo(t.Context(), testRepo, map[string]string{"a.txt": "one\n"}),
		world.AddUser(writer, 1001, map[string]string{testRepo: "write"}),
		world.AddUser(reader, 1002, map[string]string{testRepo: "read"}),
		world.Install(testRepo),
	)
	if err != nil {
		t.Fatal(err)
	}
	return world
}

func TestReusedLoginHasNoPermission(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	reach := GitHub(config.GitHub{WebURL: world.WebURL(), V3APIURL: strings.TrimSuffix(world.APIURL(), "/"), App: config.App{IntegrationID: 1}}, config.NewSecret(string(world.PrivateKeyPEM())), web.Build{})
	reach.Now, reach.Log = time.Now, zerolog.Nop()
	client, err := forge.New(reach)
	if err != nil {
		t.Fatal(err)
	}
	asked := newPermissions(client)
	for _, c := range []struct {
		repo string
		by   web.User
		want string
	}{
		{testRepo, web.User{Login: reader, ID: 1002}, "read"},
		{testRepo, web.User{Login: writer, ID: 1001}, "write"},
		{testRepo, web.User{Login: writer, ID: 1002}, "none"}, // the login now belongs to another user
		{testRepo, web.User{Login: "nobody", ID: 5}, "none"},
		{"acme/nowhere", web.User{Login: writer, ID: 1001}, "none"},
	} {
		if got, err := asked.of(t.Context(), c.repo, c.by); err != nil || got != c.want {
			t.Errorf("%+v at %s: %q, %v; want %q", c.by, c.repo, got, err, c.want)
		}
	}
	if err := world.RemoveRepo(testRepo); err != nil {
		t.Fatal(err)
	}
	world.RevokeTokens()
	if got, err := asked.of(t.Context(), testRepo, web.User{Login: writer, ID: 1001}); err != nil || got != "none" {
		t.Errorf("after the App was taken from the repository: %q, %v", got, err)
	}
}
