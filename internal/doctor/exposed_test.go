package doctor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// public lets every user enter the clinic's folder, and sets the mode of a file in it.
func (c *clinic) public(name string, mode os.FileMode) {
	c.Helper()
	// t.TempDir is two folders deep; the folders above belong to others.
	for _, dir := range []string{c.dir, filepath.Dir(c.dir)} {
		c.must(os.Chmod(dir, 0o755))
	}
	c.must(os.Chmod(c.path(name), mode))
}

// configured writes the configuration with a mode.
func (c *clinic) configured(mode os.FileMode) {
	c.Helper()
	c.write("pawl.yml", c.text)
	c.public("pawl.yml", mode)
}

func TestSecretsReadableByEveryoneAreReported(t *testing.T) {
	fromVariables := func(c *clinic) {
		c.Setenv("HOOK_SECRET", webhookSecret)
		c.replace(fmt.Sprintf("%q", webhookSecret), `"${HOOK_SECRET}"`)
	}
	const none = "no secret is open to every user of this machine"
	find(t, []ill{
		{"nothing", func(c *clinic) { c.public("app.pem", 0o600) }, OK, "secrets", none, ""},
		{"the configuration", func(c *clinic) { c.configured(0o644) },
			Warning, "secrets", "can read ", "chmod o-rwx "},
		{"its key is named", func(c *clinic) { c.configured(0o644) },
			Warning, "secrets", "pawl.yml, which holds github.app.webhook_secret", ""},
		{"a configuration without secrets", func(c *clinic) {
			fromVariables(c)
			c.configured(0o644)
		}, OK, "secrets", none, ""},
		{"a configuration that everybody can change", func(c *clinic) { c.configured(0o602) },
			Warning, "secrets", "can change ", "chmod o-rwx "},
		{"the group is the operator's", func(c *clinic) { c.configured(0o660) }, OK, "secrets", none, ""},
		{"a folder closed to other users", func(c *clinic) {
			c.configured(0o644)
			c.must(os.Chmod(c.dir, 0o750))
		}, OK, "secrets", none, ""},
		{"the private key", func(c *clinic) { c.public("app.pem", 0o604) },
			Warning, "secrets", "app.pem, which holds the App's private key", "/app.pem"},
		{"the private key behind a link", func(c *clinic) {
			c.must(os.Rename(c.path("app.pem"), c.path("key")))
			c.must(os.Symlink("key", c.path("app.pem")))
			c.public("key", 0o644)
		}, Warning, "secrets", "the App's private key", "/app.pem"},
		{"the gateway's key", func(c *clinic) {
			c.text += "gateway: {address: \"127.0.0.1:0\", cert_file: cert.pem, key_file: key.pem, nodes: [{name: other, token: token-of-the-other-node}]}\n"
			c.write("key.pem", "x")
			c.public("key.pem", 0o644)
		}, Warning, "secrets", "key.pem, which holds the gateway's TLS key", "/key.pem"},
		{"the database", func(c *clinic) { c.public("pawl.db", 0o644) },
			Warning, "secrets", "pawl.db, which holds the log", "/pawl.db"},
		{"the data folder", func(c *clinic) { c.public("data", 0o755) },
			Warning, "secrets", "data, which holds clones", "/data"},
		{"a data folder that everybody can enter", func(c *clinic) { c.public("data", 0o711) },
			Warning, "secrets", "data, which holds clones", "/data"},
		{"transcripts where the data folder is the configuration's", func(c *clinic) {
			c.replace("data_dir: data", "data_dir: .")
			c.must(os.Mkdir(c.path("attempts"), 0o700))
			c.public("attempts", 0o755)
		}, Warning, "secrets", "attempts, which holds clones of repositories and transcripts", "/attempts"},
		{"a data folder of the configuration's with nothing open", func(c *clinic) {
			c.replace("data_dir: data", "data_dir: .")
			c.must(os.Mkdir(c.path("attempts"), 0o700))
			c.public("attempts", 0o700)
		}, OK, "secrets", none, ""},
		{"a login", func(c *clinic) {
			c.replace("kind: codex", "kind: codex, credential_file: auth.json")
			c.write("auth.json", "{}")
			c.public("auth.json", 0o644)
		}, Warning, "secrets", "auth.json, which holds the login of backend mine", "/auth.json"},
		{"the file of the variables", func(c *clinic) {
			fromVariables(c)
			c.write("service.env", "# for systemd\nLANG=C\nHOOK_SECRET=x\n")
			c.public("service.env", 0o644)
		}, Warning, "secrets", "service.env, which holds HOOK_SECRET", "/service.env"},
		{"the file of other variables", func(c *clinic) {
			fromVariables(c)
			c.write(".env", "LANG=C\nHOOK_SECRET=\nNOT_HOOK_SECRET=x\n")
			c.public(".env", 0o644)
		}, OK, "secrets", none, ""},
	})
}

// A port counts as taken if another program uses it, but not if the configuration's own server does.
func TestUnavailableAddressesAreReported(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	set := func(c *clinic, server string) { c.text += "server: {" + server + "}\n" }
	find(t, []ill{
		{"of the webhook", func(c *clinic) { set(c, fmt.Sprintf("address: %q", address)) },
			Warning, "port", "server.address: another program listens on " + address, "ss -ltnp 'sport = :" + port},
		{"of the pages", func(c *clinic) { set(c, fmt.Sprintf("address: \"127.0.0.1:0\", pages: %q", address)) },
			Warning, "port", "server.pages: another program listens on " + address, "set server.pages"},
		{"of the gateway", func(c *clinic) {
			set(c, `address: "127.0.0.1:0"`)
			c.text += fmt.Sprintf("gateway: {address: %q, nodes: [{name: other, token: token-of-the-other-node}]}\n", address)
		}, Warning, "port", "gateway.address: another program listens on " + address, "set gateway.address"},
		{"of another machine", func(c *clinic) { set(c, `address: "192.0.2.1:8080"`) },
			Warning, "port", "server.address: ", "that this machine has"},
	})
	t.Run("of the server that runs", func(t *testing.T) {
		c := newClinic(t, nil)
		set(c, fmt.Sprintf("address: %q", address))
		c.write("data/configuration.json", fmt.Sprintf(`{"pid": %d}`, os.Getpid()))
		for _, f := range c.examine() {
			if f.Check == "port" {
				t.Errorf("%+v", f)
			}
		}
	})
}

func TestFewInodesAreReported(t *testing.T) {
	for _, row := range []struct {
		free, total uint64
		words       string // empty for no warning
	}{
		{0, 1_000_000, "0 more files can be created below /data"},
		{leastInodes - 1, 1_000_000, "199999 more files"},
		{leastInodes, 1_000_000, ""},
		{0, 0, ""}, // a file system that counts none, such as btrfs
	} {
		found := inodes(row.free, row.total, "/data")
		warned := len(found) == 1 && found[0].State == Warning
		warned = warned && strings.Contains(found[0].Text, row.words) && strings.Contains(found[0].Hint, "inodes")
		if warned != (row.words != "") {
			t.Errorf("%d of %d: %+v, want %q", row.free, row.total, found, row.words)
		}
	}
}
