package doctor

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/setup"
)

func TestDoctorComparesTheClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		database, github time.Duration // how far this machine's clock is ahead
		known            bool
		state, want      string
	}{
		{known: true, state: OK, want: "agrees with GitHub's"},
		{github: -50 * time.Second, known: true, state: OK, want: "agrees with GitHub's"},
		{github: -70 * time.Second, known: true, state: Failed, want: "1m10s behind GitHub's; set it"},
		{github: time.Hour, known: true, state: Failed, want: "1h0m0s ahead of GitHub's; set it"},
		{database: time.Hour, known: true, state: Failed, want: "1h0m0s ahead of the database's; set it"},
		{database: -time.Hour, state: Failed, want: "1h0m0s behind the database's; set it"},
	} {
		found := clocks(c.database, c.github, c.known)
		if len(found) != 1 || found[0].State != c.state || !strings.Contains(found[0].Text, c.want) {
			t.Errorf("%s ahead of the database, %s of GitHub: %+v; want %s, %q", c.database, c.github, found, c.state, c.want)
		}
	}
	if found := clocks(0, 0, false); len(found) > 0 {
		t.Errorf("without a known clock: %+v", found)
	}
}

func TestFailedSignInIsExplained(t *testing.T) {
	find(t, []ill{
		{"no key file", func(c *clinic) { c.must(os.Remove(c.path("app.pem"))) },
			Failed, "github", "app.pem: no such file", "private_key_file"},
		{"no key in the file", func(c *clinic) { c.write("app.pem", "hello") },
			Failed, "github", "is not a private key in PEM", "private_key_file"},
		{"half a key", func(c *clinic) {
			c.write("app.pem", "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n")
		}, Failed, "github", "github.app.private_key", "private_key_file"},
		{"the key of another App", func(c *clinic) {
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			c.must(err)
			block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
			c.write("app.pem", string(pem.EncodeToMemory(block)))
		}, Failed, "github", "401 Unauthorized", "the private key must belong to that App"},
		{"the id of another App", func(c *clinic) { c.replace("integration_id: 1", "integration_id: 2") },
			Failed, "github", "404 Not Found", "github.app.integration_id is 2: it must be the App ID"},
		{"no server at the address", func(c *clinic) { c.must(c.github.Close()) },
			Failed, "github", "connection refused", "whether this machine reaches it"},
		{"another server at the address", func(c *clinic) { c.replace("/api/v3", "/") },
			Failed, "github", "GET", "v3_api_url"},
	})
}

func TestAppPermissionFindings(t *testing.T) {
	granted := func(change func(map[string]string)) *exam {
		permissions := setup.AppPermissions()
		change(permissions)
		return &exam{app: &signedIn{app: forge.App{Permissions: permissions, Events: setup.AppEvents()}}}
	}
	const accept = "; every owner who installed it must accept the change"
	for name, c := range map[string]struct {
		found []Finding
		want  []Finding
	}{
		"every permission": {granted(func(map[string]string) {}).permissions(t.Context()), ok("the App has all permissions that it needs")},
		"a permission that is missing": {
			granted(func(p map[string]string) { p["checks"] = "read"; delete(p, "pull_requests") }).permissions(t.Context()),
			failed("the App lacks checks: write, pull_requests: write", "grant them in the App's settings"+accept),
		},
		"only the permission to read logs is missing": {
			granted(func(p map[string]string) { delete(p, "actions") }).permissions(t.Context()),
			append(warning("the App lacks actions: read, so no agent gets the logs of failing jobs", "grant it in the App's settings"+accept),
				ok("the App has all permissions that it needs")...),
		},
		"an unneeded permission": {
			granted(func(p map[string]string) { p["workflows"] = "write" }).workflows(t.Context()),
			warning("the App has the permission workflows, so an agent could change workflows that run with the repository's secrets",
				"remove it in the App's settings"),
		},
	} {
		if diff := cmp.Diff(c.want, c.found); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAppEventFindings(t *testing.T) {
	c := newClinic(t, func(o *fakegithub.Options) { o.Events = setup.AppEvents()[2:] })
	c.finds(Failed, "events", "does not subscribe to issues, issue_comment", "tick them")
	c = newClinic(t, func(o *fakegithub.Options) { o.Events = append(setup.AppEvents(), "star") })
	c.finds(OK, "events", "subscribes to all events", "")
}

func TestWebhookFindings(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(server.Close)
	address := server.URL + HookPath
	c := newClinic(t, func(o *fakegithub.Options) { o.WebhookURL = address })
	c.finds(Warning, "installed", "the App is installed nowhere", "/apps/pawl/installations/new")
	c.finds(OK, "hook", "has sent none in three days", "")
	c.must(c.github.AddRepo(t.Context(), "acme/widgets", map[string]string{"a.txt": "one\n"}))
	c.must(c.github.Install("acme/widgets"))
	c.must(c.github.WaitDelivered(t.Context()))
	c.finds(OK, "installed", "installed on 1 account", "")
	c.finds(OK, "hook", "the last delivery to "+address+" arrived", "")
	status = http.StatusUnauthorized
	c.github.Ping()
	c.must(c.github.WaitDelivered(t.Context()))
	c.finds(Warning, "hook", "1 of the last 2 deliveries", "that the webhook's secret is webhook_secret")
	c.github.SetWebhookURL("")
	c.finds(Failed, "hook", `GitHub sends deliveries to ""`, "set github.receive to poll")
	c.replace("github:\n", "github:\n  receive: poll\n")
	c.finds(OK, "hook", "the server polls GitHub for deliveries", "")
}

// Without bubblewrap, agents can read the variables of Pawl's children.
func TestSigningKeyIsCheckedWithoutVariables(t *testing.T) {
	c := newClinic(t, nil)
	c.replace("private_key_file: app.pem", "private_key_file: app.pem, signing_key_file: key")
	c.write("key", "x")
	c.only("git", "sh", "cat")
	c.script("bin/ssh-keygen", "PATH="+c.path("bin")+"\nexport HOME_WAS=$HOME\necho \"variables:$HOOK_SECRET$HOME_WAS end\"\n")
	c.Setenv("HOOK_SECRET", webhookSecret)
	c.finds(OK, "signing", "(variables:)", "")
}

func TestSigningKeyFindings(t *testing.T) {
	needs.Program(t, "ssh-keygen")
	c := newClinic(t, nil)
	c.replace("private_key_file: app.pem", "private_key_file: app.pem, signing_key_file: key")
	key := c.path("key")
	makes := func(passphrase string) {
		_ = os.Remove(key) // if there is one
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", key).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	c.finds(Failed, "signing", "key: no such file", "ssh-keygen -t ed25519")
	makes("")
	c.finds(OK, "signing", "are signed by "+key+" (ssh-ed25519)", "verified")
	c.must(os.Chmod(key, 0o644))
	c.finds(Failed, "signing", "others can read ", "chmod 600")
	makes("a passphrase")
	c.finds(Failed, "signing", "is not a usable signing key", "without a passphrase")
	c.write("key", "hello\n")
	c.finds(Failed, "signing", "is not a usable signing key", "without a passphrase")
}
