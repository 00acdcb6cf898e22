package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/pawlbot/pawl/lab/rig"
)

// Aims of the webhook answers: ratios to the other servers' rates in the same round, and the latency at half of Pawl's
// rate.
const (
	dispatcherAim = 0.3
	probotAim     = 1.1
	halfAim       = 15 * time.Millisecond
)

// The number of rounds, in which the servers take turns, and the duration of the load in each round.
const (
	ratioRounds = 5
	ratioTime   = 3 * time.Second
)

// measureRatios compares Pawl, go-githubapp's dispatcher and Probot with the same deliveries. They take turns, so that the
// machine's other load is the same for all.
func measureRatios(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	keys, err := newBench(ctx, bin, dir, "exit 1\n", "plain", "none", "")
	if err != nil {
		return nil, nil, err
	}
	shots, err := keys.comments()
	if err := errors.Join(err, keys.Close()); err != nil {
		return nil, nil, err
	}
	reference, err := dispatcher(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	var rivals []rival
	for _, work := range []string{"nothing", "parse"} {
		rivals = append(rivals, rival{"dispatcher, " + work, func(ctx context.Context, addr string) *exec.Cmd {
			return exec.CommandContext(ctx, reference, addr, secret, work)
		}})
	}
	node, why, err := probot(ctx, filepath.Join(dir, "app.pem"))
	switch {
	case err != nil:
		return nil, nil, err
	case why != "":
		notes = append(notes, "Probot was not measured: "+why+".")
	default:
		rivals = append(rivals, node)
	}
	rates, cpu := map[string][]float64{}, map[string][]float64{}
	for n := range ratioRounds {
		rate, err := pawlRate(ctx, bin, filepath.Join(dir, fmt.Sprint("pawl-", n)), shots)
		if err != nil {
			return nil, nil, err
		}
		rates["pawl"], cpu["pawl"] = append(rates["pawl"], rate.rate), append(cpu["pawl"], rate.cpu)
		for _, r := range rivals {
			if rate, err = r.rate(ctx, dir, shots); err != nil {
				return nil, nil, err
			}
			rates[r.name], cpu[r.name] = append(rates[r.name], rate.rate), append(cpu[r.name], rate.cpu)
		}
	}
	for _, r := range rivals {
		aim := 0.0
		switch r.name {
		case "Probot":
			aim = probotAim
		case "dispatcher, nothing":
			aim = dispatcherAim
		}
		rows = append(rows, ratioRow(r.name, rates["pawl"], rates[r.name], aim))
	}
	for name, all := range rates {
		notes = append(notes, fmt.Sprintf("Answers per second at full speed, %s: %s; the server's processor time for one answer: %s µs.",
			name, minMedianMax(all, "%.0f"), minMedianMax(cpu[name], "%.0f")))
	}
	slices.Sort(notes)
	half, err := halfLoad(ctx, bin, dir, middle(rates["pawl"])/2)
	return append(rows, half), notes, err
}

// ratioRow compares Pawl's rates with another server's round by round.
func ratioRow(name string, pawl, other []float64, aim float64) row {
	var ratios []float64
	for i := range pawl {
		ratios = append(ratios, pawl[i]/other[i])
	}
	r := row{what: fmt.Sprintf("durable answers, %d connections, to %s", connections, name), measured: minMedianMax(ratios, "%.2f") + " ×"}
	if aim > 0 {
		r.aim, r.met = fmt.Sprintf("median ≥ %.2f ×", aim), middle(ratios) >= aim
	}
	return r
}

// rated holds a server's answers per second, and its CPU time per answer in µs. That includes handling the delivery.
type rated struct{ rate, cpu float64 }

func pawlRate(ctx context.Context, bin, dir string, shots []shot) (res rated, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return res, err
	}
	r, err := newBench(ctx, bin, dir, "exit 1\n", "plain", "none", "log: {level: warn}\n")
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if _, err := r.Start(ctx); err != nil {
		return res, err
	}
	return answerRate(ctx, r.Addr, r.Server.Process.Pid, shots)
}

func (r rival) rate(ctx context.Context, dir string, shots []shot) (res rated, err error) {
	p, err := r.start(ctx, filepath.Join(dir, "rival.log"))
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	return answerRate(ctx, p.addr, p.cmd.Process.Pid, shots)
}

// answerRate sends each delivery as soon as the previous one is answered, after a second of warm-up.
func answerRate(ctx context.Context, addr string, pid int, shots []shot) (rated, error) {
	l := load{addr: addr, shots: shots, connections: connections, time: time.Second, prefix: 1}
	if _, err := l.run(ctx); err != nil {
		return rated{}, err
	}
	l.time, l.prefix = ratioTime, 2
	before := cpuTime(pid)
	res, err := l.run(ctx)
	used := cpuTime(pid) - before
	return rated{res.perSecond(), float64(used.Microseconds()) / float64(max(len(res.took), 1))}, err
}

// halfLoad returns the 99th percentile of the latency at a rate, counted from the time when a delivery was due. It measures
// several new servers, because a single round depends too much on the disk.
func halfLoad(ctx context.Context, bin, dir string, rate float64) (row, error) {
	var p50, p99 []float64
	for n := range ratioRounds {
		own := filepath.Join(dir, fmt.Sprint("half-", n))
		if err := os.Mkdir(own, 0o700); err != nil {
			return row{}, err
		}
		res, _, err := webhooks(ctx, bin, own, load{connections: connections, rate: int(rate), time: ratioTime})
		if err != nil {
			return row{}, err
		}
		p50, p99 = append(p50, milliseconds(res.took, 0.5)), append(p99, milliseconds(res.took, 0.99))
	}
	return row{fmt.Sprintf("webhook answers at half of that, %d/s", int(rate)),
		fmt.Sprintf("p50 %s ms, p99 %s ms", minMedianMax(p50, "%.1f"), minMedianMax(p99, "%.1f")),
		"median p99 < " + ms(halfAim), middle(p99) < float64(halfAim.Milliseconds())}, nil
}

func milliseconds(all []time.Duration, q float64) float64 {
	return float64(quantile(all, q)) / float64(time.Millisecond)
}

// process is a running rival: another server to compare Pawl with.
type process struct {
	addr string
	cmd  *exec.Cmd
}

type rival struct {
	name    string
	command func(ctx context.Context, addr string) *exec.Cmd
}

// start starts a rival and waits until it accepts connections.
func (r rival) start(ctx context.Context, log string) (p *process, err error) {
	addr, err := rig.FreeAddress()
	if err != nil {
		return nil, err
	}
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p = &process{addr: addr, cmd: r.command(ctx, addr)}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", r.name, err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		resp, err := http.Get("http://" + addr + "/readyz")
		if err == nil {
			return p, resp.Body.Close()
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			text, _ := os.ReadFile(log)
			return nil, errors.Join(fmt.Errorf("%s does not answer: %w\n%s", r.name, err, text), p.stop())
		}
	}
}

func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	_ = p.cmd.Wait() // returns the kill as an error
	return nil
}

// dispatcher builds the reference server: go-githubapp with its in-memory scheduler.
func dispatcher(ctx context.Context, dir string) (bin string, err error) {
	root, err := rig.ProjectRoot(ctx)
	if err != nil {
		return "", err
	}
	bin = filepath.Join(dir, "dispatcher")
	return bin, rig.BuildGo(ctx, filepath.Join(root, "lab"), bin, "./bench/testdata/dispatcher")
}

// probot installs Probot from its lock file, once, and returns how to start it. If that fails, why is the reason.
func probot(ctx context.Context, key string) (r rival, why string, err error) {
	root, err := rig.ProjectRoot(ctx)
	if err != nil {
		return r, "", err
	}
	node, err := findNode(root)
	if err != nil {
		return r, err.Error(), nil
	}
	dir := filepath.Join(root, "lab/bench/testdata/probot")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "probot")); err != nil {
		npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		npm.Dir = dir
		if output, err := npm.CombinedOutput(); err != nil {
			return r, fmt.Sprintf("npm ci in %s: %v: %.300s", dir, err, output), nil
		}
	}
	return rival{"Probot", func(ctx context.Context, addr string) *exec.Cmd {
		host, port, _ := net.SplitHostPort(addr)
		cmd := exec.CommandContext(ctx, node, filepath.Join(dir, "server.js"), host, port, key, secret)
		cmd.Env = append(os.Environ(), "NODE_ENV=production")
		return cmd
	}}, "", nil
}

// findNode prefers the Node.js that .ci/setup installs, because Probot needs version 22.
func findNode(root string) (string, error) {
	own := filepath.Join(root, "testdata", "clis", "node_modules", ".bin", "node")
	if _, err := os.Stat(own); err == nil {
		return own, nil
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return "", errors.New("there is no Node; .ci/setup installs it")
	}
	return node, nil
}

const (
	// Required ratios of the fingerprint's speed to the speed of HMAC and of the regexps.
	hmacAim      = 0.15
	referenceAim = 30.0
	// fingerprintRounds is the number of benchmark runs, each with its own ratios.
	fingerprintRounds = 3
)

// benchmarkLine matches the speed in a line such as BenchmarkHMAC/log-2    1234    567 ns/op    890.12 MB/s.
var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark(Fingerprint|Reference|HMAC)/(words|log)\S*\s.*\s([0-9.]+) MB/s`)

// fingerprintRows runs the benchmarks of package simhash and compares the speeds on the same text. The regexps are in the
// tests of simhash, where they define the fingerprint.
func fingerprintRows(ctx context.Context) ([]row, error) {
	root, err := rig.ProjectRoot(ctx)
	if err != nil {
		return nil, err
	}
	hmac, reference := map[string][]float64{}, map[string][]float64{}
	texts := []string{"words", "log"}
	for range fingerprintRounds {
		cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "Fingerprint|Reference|HMAC", "-benchtime", "200ms", "./policy/simhash")
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("benchmark the fingerprint: %w\n%s", err, out)
		}
		speed := map[string]float64{}
		for _, m := range benchmarkLine.FindAllSubmatch(out, -1) {
			if speed[string(m[1])+string(m[2])], err = strconv.ParseFloat(string(m[3]), 64); err != nil {
				return nil, err
			}
		}
		for _, t := range texts {
			own, of, than := speed["Fingerprint"+t], speed["HMAC"+t], speed["Reference"+t]
			if own == 0 || of == 0 || than == 0 {
				return nil, fmt.Errorf("benchmark the fingerprint: a speed is missing\n%s", out)
			}
			hmac[t], reference[t] = append(hmac[t], own/of), append(reference[t], own/than)
		}
	}
	var rows []row
	for _, t := range texts {
		slices.Sort(hmac[t])
		slices.Sort(reference[t])
		h, r := hmac[t][fingerprintRounds/2], reference[t][fingerprintRounds/2]
		rows = append(rows,
			row{fmt.Sprintf("fingerprint of 1 MiB of %s, to HMAC-SHA256", t), fmt.Sprintf("%.2f ×", h), fmt.Sprintf("≥ %g ×", hmacAim), h >= hmacAim},
			row{fmt.Sprintf("fingerprint of 1 MiB of %s, to the regexps", t), fmt.Sprintf("%.0f ×", r), fmt.Sprintf("≥ %g ×", referenceAim), r >= referenceAim})
	}
	return rows, nil
}
