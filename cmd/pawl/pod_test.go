package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/postgrestest"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// podSearcher is an agent that reports where it runs, and reads the server's process and configuration.
const podSearcher = `
exec 2> /dev/null
{
	echo "namespace $(readlink /proc/self/ns/pid)"
	echo "folder $PWD"
	tr '\0' ' ' < /proc/$PPID/cmdline; echo
	for file in environ mem maps; do cat /proc/$PPID/$file > /dev/null && echo "opened-$file"; done
	tr '\0' '\n' < /proc/$PPID/environ; ls -l /proc/$PPID/fd
	find "$CTRL/.." -maxdepth 1 -type f -size -100k -exec cat {} +
} > "$CTRL/found"
echo two >> a.txt
`

// TestAgentInAPodReadsNoSecretOfTheEnvironment starts the server as an ordinary user, as in a pod. The server's secrets
// are only in its environment.
func TestAgentInAPodReadsNoSecretOfTheEnvironment(t *testing.T) {
	db := postgrestest.Start(t)
	r := newProcessRig(t, nil)
	p := plant(r.World.PrivateKeyPEM())
	p.secrets["database"] = db.Address(db.NewDatabase(t, ""))
	r.Agent(podSearcher, "")
	r.Config += "sandbox: {mode: pod}\nworkers: 1\n"
	r.DSN = p.secrets["database"]
	r.Edit = strings.NewReplacer(
		"private_key_file: app.pem", `private_key: "${PAWL_KEY}"`,
		fmt.Sprintf("%q", testrig.Secret), `"${PAWL_HOOK}"`,
		r.DSN, "${PAWL_DATABASE}",
	)
	r.Must(os.Remove(filepath.Join(r.Dir, "app.pem")))
	t.Setenv("PAWL_DATABASE", p.secrets["database"])
	t.Setenv("PAWL_HOOK", testrig.Secret)
	t.Setenv("PAWL_KEY", string(r.World.PrivateKeyPEM()))
	program := filepath.Join(r.Dir, "pawl")
	copyProgram(t, program)
	path := r.File()
	before := ordinary(t)
	if os.Geteuid() == 0 {
		r.Must(exec.Command("chown", "-R", "65534:65534", filepath.Dir(r.Dir)).Run())
	}
	cmd := exec.Command(before[0], append(before[1:], program, "serve", "--config", path)...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Env = append(cmd.Env, "KUBERNETES_SERVICE_HOST=10.96.0.1", "TMPDIR="+r.Dir)
	r.ServeBy(cmd)
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	text, err := os.ReadFile(filepath.Join(r.Ctrl(), "found"))
	r.Must(err)
	found := string(text)
	own, err := os.Readlink("/proc/self/ns/pid")
	r.Must(err)
	for _, want := range []string{"namespace " + own + "\n", "folder " + r.Dir, program + " serve ", "sandbox: {mode: pod}"} {
		if !strings.Contains(found, want) {
			t.Errorf("the agent found no %q in\n%s", want, found)
		}
	}
	for _, file := range []string{"environ", "mem", "maps"} {
		if strings.Contains(found, "opened-"+file+"\n") {
			t.Errorf("the agent opened the server's %s", file)
		}
	}
	p.check(t, "what the agent found", found)
	summary := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl").Summary
	if !strings.Contains(summary, "Agents have the same network access as this server (`sandbox.mode: pod`).") {
		t.Errorf("the check run contains\n%s", summary)
	}
}

// TestServerRefusesModePodOutsideOfAPod starts a real server with mode pod on an ordinary machine.
func TestServerRefusesModePodOutsideOfAPod(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Agent("exit 0\n", "")
	r.Config += "sandbox: {mode: pod}\nworkers: 1\n"
	r.DSN = "postgres://pawl@127.0.0.1:1/pawl"
	cmd := exec.Command(testrig.Program, "serve", "--config", r.File())
	cmd.Env = append(os.Environ(), "KUBERNETES_SERVICE_HOST=")
	out, err := cmd.CombinedOutput()
	const want = "sandbox.mode is pod, but this process is not in a Kubernetes pod: the variable KUBERNETES_SERVICE_HOST is missing"
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%v\n%s", err, out)
	}
}

// The server runs no agents. Its metric, which autoscalers read, counts the attempt until a worker in a pod takes it.
func TestWorkerInAPodTakesTheWaitingAttempt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	c.Agent("cat > /dev/null; echo line >> a.txt\n", "")
	front := c.joinWith("workers: 0\n")
	n := c.issue("One line")
	c.waits(n, policy.RuleNoNode, "no running server takes attempts")
	const waiting = `pawl_attempts_waiting{labels=""}`
	c.Await("the waiting attempt in the metric", func() bool { return c.Metric(waiting) == 1 })
	c.Config += "sandbox: {mode: pod}\nworkers: 1\n"
	c.Edit = strings.NewReplacer(`address: "127.0.0.1:0"`, `address: ""`)
	cmd := exec.Command(testrig.Program, "serve", "--config", c.File())
	cmd.Env = append(os.Environ(), "KUBERNETES_SERVICE_HOST=10.96.0.1")
	worker := c.launch(cmd)
	c.to(front)
	c.doneAtOnce(n)
	if front.Started() != 0 || worker.Started() != 1 {
		t.Errorf("the server started %d attempts and the worker %d, want 0 and 1", front.Started(), worker.Started())
	}
	if got := c.Metric(waiting); got != 0 {
		t.Errorf("%s is %v after the attempt", waiting, got)
	}
}
