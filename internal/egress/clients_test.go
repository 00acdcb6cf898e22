package egress

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/policy"
)

// TestMain lets the sandbox start this test binary as the program that listens inside.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.InsideCommand {
		fmt.Fprintln(os.Stderr, sandbox.Inside(os.Args[2:]))
		os.Exit(126)
	}
	os.Exit(m.Run())
}

// Users' programs run in a sandbox with its own network and request a TLS server that is reachable only through the proxy.
// The server answers 404 to all of them: only the received requests are checked.
func TestPackageManagersUseTheProxy(t *testing.T) {
	needs.All(t, "bubblewrap")
	box, err := sandbox.New(t.Context(), sandbox.Auto)
	if err == nil {
		var self string
		self, err = os.Executable()
		if err == nil {
			err = box.UseProgram(t.Context(), self, true)
		}
	}
	if err != nil {
		t.Skipf("no sandbox here: %v", err)
	}
	var mu sync.Mutex
	var asked []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		http.NotFound(w, r)
	}))
	server.TLS = &tls.Config{}
	server.StartTLS()
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	base := "https://example.com:" + port
	home := os.Getenv("HOME")
	for _, c := range []struct{ program, script, want string }{
		{"curl", "curl -sS --cacert $CA $BASE/by-curl", "/by-curl"},
		{"git", "git -c http.sslCAInfo=$CA clone $BASE/by/git.git there", "/by/git.git/info/refs"},
		{"npm", "npm view by-npm --registry $BASE/ --cafile $CA --fetch-retries 0", "/by-npm"},
		{"pip", "python3 -m pip download by-pip --no-deps --disable-pip-version-check --retries 0 --index-url $BASE/simple --cert $CA", "/simple/by-pip/"},
		{"go", "SSL_CERT_FILE=$CA GOPROXY=$BASE GONOSUMDB=* GOFLAGS=-mod=mod go list -m by.example.org/go@latest", "/by.example.org/go/@v/list"},
		{"cargo", "export CARGO_HTTP_CAINFO=$CA CARGO_NET_RETRY=0 CARGO_HOME=$HOME/cargo\nmkdir -p cargo src $HOME/cargo\necho > src/lib.rs\nprintf '[package]\\nname = \"a\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n[dependencies]\\nbycargo = \"1\"\\n' > Cargo.toml\n" +
			"printf '[source.crates-io]\\nreplace-with = \"own\"\\n[source.own]\\nregistry = \"sparse+%s/index/\"\\n' $BASE > $HOME/cargo/config.toml\ncargo fetch", "/index/config.json"},
		{"mvn", "printf '<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId><version>1</version><repositories><repository><id>central</id><url>%s/maven</url></repository></repositories><pluginRepositories><pluginRepository><id>central</id><url>%s/maven</url></pluginRepository></pluginRepositories></project>' $BASE $BASE > pom.xml\n" +
			"MAVEN_OPTS=\"$MAVEN_OPTS -Dmaven.wagon.http.ssl.insecure=true -Dmaven.wagon.http.ssl.allowall=true -Duser.home=$HOME\" mvn -B -q validate dependency:resolve", "/maven/org/apache/maven/plugins/"},
	} {
		t.Run(c.program, func(t *testing.T) {
			path := needs.Program(t, c.program)
			var shown []string
			if tools := filepath.Dir(filepath.Dir(path)); !strings.HasPrefix(path, "/usr/") && home != "" && strings.HasPrefix(tools, home) {
				shown = []string{tools}
				if c.program == "cargo" {
					shown = append(shown, filepath.Join(home, ".rustup"))
				}
			}
			dir := t.TempDir()
			spec := sandbox.Spec{
				Argv: []string{"sh", "-c", c.script}, Dir: filepath.Join(dir, "work"), Home: filepath.Join(dir, "home"), ReadOnly: shown,
				Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "BASE=" + base, "CA=" + filepath.Join(dir, "work", "ca.pem"), "RUSTUP_HOME=" + home + "/.rustup"},
			}
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			for _, d := range []string{spec.Dir, spec.Home} {
				if err := os.Mkdir(d, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(spec.Dir, "ca.pem"), ca, 0o600); err != nil {
				t.Fatal(err)
			}
			proxy := New(Options{
				Allow: []policy.HostRule{{Name: "example.com", Port: port}}, Where: "network.setup",
				Resolver: names(t, map[string]string{"example.com": "127.0.0.1"}), Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
			})
			spec.Env = Clients("29402", spec.Env)
			spec.Network = &sandbox.Network{Ports: []int{29402}, Serve: func(l []net.Listener) { go proxy.Serve(l[0]) }}
			p, err := box.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			go io.Copy(io.Discard, p.Stdout())
			stderr, _ := io.ReadAll(p.Stderr())
			p.Wait()
			traffic := proxy.Close()
			mu.Lock()
			defer mu.Unlock()
			if all := strings.Join(asked, "\n"); !strings.Contains(all, c.want) {
				t.Errorf("the server got requests for %q, want %s; refused %q\n%s", all, c.want, traffic.Refused, stderr)
			}
			asked = nil
		})
	}
}
