package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pawlbot/pawl/internal/doctor"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/setup"
)

func TestDoctorTellsWhyTheAppCannotSignIn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		edit        func(*clinic)
		words, hint string
	}{
		{"no key file", func(c *clinic) { c.Must(os.Remove(filepath.Join(c.Dir, "app.pem"))) }, "app.pem: no such file", "private_key_file"},
		{"no key in the file", func(c *clinic) { c.Must(os.WriteFile(filepath.Join(c.Dir, "app.pem"), []byte("hello"), 0o600)) }, "is not a private key in PEM", "private_key_file"},
		{"half a key", func(c *clinic) {
			c.Must(os.WriteFile(filepath.Join(c.Dir, "app.pem"), []byte("-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"), 0o600))
		}, "github.app.private_key", "private_key_file"},
		{"the key of another App", func(c *clinic) {
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			c.Must(err)
			c.Must(os.WriteFile(filepath.Join(c.Dir, "app.pem"), pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600))
		}, "401 Unauthorized", "integration_id, the private key"},
		{"the id of another App", func(c *clinic) { c.replace("integration_id: 1", "integration_id: 2") }, "404 Not Found", "integration_id"},
		{"nobody at the address", func(c *clinic) { c.Must(c.World.Close()) }, "connection refused", "whether this machine reaches it"},
		{"another server at the address", func(c *clinic) { c.replace("/api/v3", "/") }, "GET", "v3_api_url"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clinic := newClinic(t, nil)
			c.edit(clinic)
			clinic.finds(doctor.Failed, "github", c.words, c.hint)
		})
	}
}

func TestDoctorComparesTheAppWithWhatItNeeds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                      string
		change                    func(*fakegithub.Options)
		state, check, words, hint string
	}{
		{"a permission that is missing", func(o *fakegithub.Options) {
			o.Permissions = map[string]string{"actions": "read", "checks": "read", "contents": "write", "issues": "write", "metadata": "read"}
		}, doctor.Failed, "permissions", "lacks checks: write, pull_requests: write", "every owner who installed it must accept"},
		{"only the permission to read logs is missing", func(o *fakegithub.Options) {
			o.Permissions = setup.AppPermissions()
			delete(o.Permissions, "actions")
		}, doctor.Warning, "permissions", "lacks actions: read, so no agent is told the logs", "every owner who installed it must accept"},
		{"a permission that is too much", func(o *fakegithub.Options) {
			o.Permissions = setup.AppPermissions()
			o.Permissions["workflows"] = "write"
		}, doctor.Warning, "permissions", "the permission workflows", "take it away"},
		{"events that are missing", func(o *fakegithub.Options) { o.Events = setup.AppEvents()[2:] }, doctor.Failed, "events", "does not subscribe to issues, issue_comment", "tick them"},
		{"more events than needed", func(o *fakegithub.Options) { o.Events = append(setup.AppEvents(), "star") }, doctor.OK, "events", "what it listens to", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			newClinic(t, c.change).finds(c.state, c.check, c.words, c.hint)
		})
	}
}

func TestDoctorLooksWhetherGitCouldSign(t *testing.T) {
	t.Parallel()
	needs.Program(t, "ssh-keygen")
	c := newClinic(t, nil)
	c.replace("private_key_file: app.pem", "private_key_file: app.pem, signing_key_file: key")
	key := filepath.Join(c.Dir, "key")
	makes := func(passphrase string) {
		_ = os.Remove(key) // where there is one
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", key).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	c.finds(doctor.Failed, "signing", "key: no such file", "ssh-keygen -t ed25519")
	makes("")
	c.finds(doctor.OK, "signing", "are signed by "+key+" (ssh-ed25519)", "verified")
	c.Must(os.Chmod(key, 0o644))
	c.finds(doctor.Failed, "signing", "may be read by others", "chmod 600")
	makes("a passphrase")
	c.finds(doctor.Failed, "signing", "is no key to sign with", "without a passphrase")
	c.Must(os.WriteFile(key, []byte("hello\n"), 0o600))
	c.finds(doctor.Failed, "signing", "is no key to sign with", "without a passphrase")
}
