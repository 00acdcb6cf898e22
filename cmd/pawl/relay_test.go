package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/internal/testcert"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

const workerToken = "token-of-the-worker-node"

var relayAddress = regexp.MustCompile(`"address":"([^"]+)"[^\n]*"relays model calls of other servers"`)

// TestWorkerCallsModelsWithoutTheKey: one node has the providers' key and runs no agents. The other runs agents, and has a
// token instead of the key. The agent can read everything on its node, since that has no sandbox.
func TestWorkerCallsModelsWithoutTheKey(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	provider, err := fakeprovider.Start(fakeprovider.Options{Key: testrig.ProviderKey})
	c.Must(err)
	t.Cleanup(func() { provider.Close() })
	c.Agent(`curl -sS -w ' %{http_code}\n' "$OPENAI_BASE_URL/responses" -H "Authorization: Bearer $OPENAI_API_KEY" -H 'Content-Type: application/json' \
	-d '{"model":"mock-model","input":"What is 6 times 7?"}' >> "$CTRL/answers"
echo line >> a.txt
`, "provider: fake, model: mock-model")
	certFile, keyFile := testcert.Write(t, c.Dir)
	base := c.Config
	c.Config += fmt.Sprintf(`workers: 0
providers: [{name: fake, protocol: openai, base_url: %q, key: %q}]
gateway: {address: "127.0.0.1:0", cert_file: %q, key_file: %q, nodes: [{name: worker, token: %q}]}
`, provider.URL("no-edit")+"/v1", testrig.ProviderKey, certFile, keyFile, workerToken)
	file := filepath.Join(c.Dir, "front.yml") // each node follows its own file
	c.Must(os.Rename(c.File(), file))
	front := c.launch(exec.Command(testrig.Program, "serve", "--config", file))
	found := relayAddress.FindStringSubmatch(front.Log.String())
	if found == nil {
		t.Fatalf("the first node does not log the gateway's address:\n%s", front.Log)
	}

	c.Config = base + fmt.Sprintf(`workers: 1
providers: [{name: fake, protocol: openai}]
gateway: {url: "https://%s", token: %q}
`, found[1], workerToken)
	cmd := exec.Command(testrig.Program, "serve", "--config", c.File())
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+certFile)
	worker := c.launch(cmd)
	c.to(front)

	n := c.issue("A question")
	c.doneAtOnce(n)
	if got := worker.Started(); got != 1 {
		t.Errorf("the worker started %d attempts, want 1", got)
	}
	if answers := c.Left("answers"); !strings.HasSuffix(answers, " 200\n") {
		t.Errorf("the agent got %s", answers)
	}
	tokens := c.State(n).Attempts[0].Receipt.Tokens
	if used := tokens.Input + tokens.Output; used == 0 || tokens.Estimated > 0 {
		t.Errorf("the worker counted %+v, want what the provider reported", tokens)
	}
	if d := c.State(n).Decision; d.Action != policy.DoDone {
		t.Errorf("then %+v, want done", d)
	}
	for _, secret := range []string{testrig.ProviderKey, workerToken} {
		if strings.Contains(front.Log.String()+worker.Log.String(), secret) {
			t.Error("a secret is in a log")
		}
	}
}
