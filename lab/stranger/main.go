package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/policy"
)

// Limits for the first solved issue.
const (
	maxCommands = 5
	fromSources = 5 * time.Minute
	withProgram = time.Minute
)

const (
	repo = "acme/widgets"
	user = "ada"
	key  = "practice-key-0123456789"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "stranger:", err)
		os.Exit(1)
	}
}

// inside is the argument of the process that runs in the new root.
const inside = "inside"

// run plays all four ways. If the argument is a built program's path, it plays only the two ways that start with a program.
func run(args []string) error {
	if len(args) == 0 || args[0] != inside {
		folder, err := os.MkdirTemp("", "stranger-")
		if err != nil {
			return err
		}
		return errors.Join(enter(folder, strings.Join(args, " ")), os.RemoveAll(folder))
	}
	var program string                               // given, or built from the sources
	if data, err := os.ReadFile(given); err == nil { // plays a downloaded release
		program = filepath.Join(home, "pawl")
		if err := errors.Join(os.MkdirAll(home, 0o755), os.WriteFile(program, data, 0o755)); err != nil {
			return err
		}
	}
	downloaded := program != ""
	var bad []error
	for i, hook := range []string{"webhook", "polling", "polling", "webhook"} {
		own := filepath.Join(home, fmt.Sprint(i))
		v := &visit{hook: hook, home: own, dir: own}
		if built := i%2 == 1; built {
			v.program = program
		} else if downloaded {
			continue
		}
		bad = append(bad, v.play(), v.table())
		program = v.program
	}
	return errors.Join(bad...)
}

// visit is one way from an empty root to a solved issue.
type visit struct {
	hook, home, dir, program string
	built                    bool // whether the program was already built
	world                    *fakegithub.Server
	model                    *fakeprovider.Server
	steps                    []step
	began                    time.Time
	took                     time.Duration // in total; zero if unfinished
}

// step is a measured step. Only the steps that the user types count as commands.
type step struct {
	text  string
	typed bool
	took  time.Duration
	work  time.Duration // CPU time; zero if the command keeps running
}

func (v *visit) play() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*fromSources)
	defer cancel()
	if err := os.MkdirAll(v.dir, 0o755); err != nil {
		return err
	}
	if v.world, err = fakegithub.New(fakegithub.Options{AppID: 7, Slug: "pawl", WebhookSecret: "made by GitHub, of some length"}); err != nil {
		return err
	}
	defer v.world.Close()
	if v.model, err = fakeprovider.Start(fakeprovider.Options{Key: key}); err != nil {
		return err
	}
	defer v.model.Close()
	if err := errors.Join(
		v.world.AddRepo(ctx, repo, map[string]string{"test.sh": "[ -s hello.txt ] || { echo 'FAIL: there is no hello.txt'; exit 1; }\necho ok\n", ".github/pawl.yml": "verify: [sh test.sh]\n"}),
		v.world.AddUser(user, 1001, map[string]string{repo: "write"}),
	); err != nil {
		return err
	}
	v.began, v.built = time.Now(), v.program != ""
	if !v.built {
		if err := v.types(ctx, "git clone "+sources+" pawl && cd pawl"); err != nil {
			return err
		}
		v.dir = filepath.Join(v.dir, "pawl")
		if err := v.types(ctx, "make build"); err != nil {
			return err
		}
		v.program = filepath.Join(v.dir, "bin/pawl")
	}
	if err := v.setup(ctx); err != nil {
		return err
	}
	return v.serve(ctx)
}

func (v *visit) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(line, "pawl ", v.program+" "))
	if strings.Contains(line, "make ") || strings.Contains(line, "git ") {
		cmd.Args[2] = line
	}
	cmd.Dir = v.dir
	cmd.Env = append(os.Environ(), "HOME="+v.home, "OPENAI_API_KEY="+key, "OPENAI_BASE_URL="+v.model.URL("edit-success")+"/v1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func (v *visit) types(ctx context.Context, line string) error {
	began, cmd := time.Now(), v.command(ctx, line)
	out, err := cmd.CombinedOutput()
	done := step{text: line, typed: true, took: time.Since(began)}
	if p := cmd.ProcessState; p != nil {
		done.work = p.UserTime() + p.SystemTime()
	}
	v.steps = append(v.steps, done)
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", line, err, out)
	}
	return nil
}

// follow starts a command and returns its output up to a matching line.
func (v *visit) follow(ctx context.Context, line string, pattern *regexp.Regexp) (cmd *exec.Cmd, found []string, rest *bufio.Reader, err error) {
	cmd = v.command(ctx, line+" 2>&1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, nil, nil, err
	}
	var output strings.Builder
	rest = bufio.NewReader(io.TeeReader(out, &output))
	for {
		text, err := rest.ReadString('\n')
		if found = pattern.FindStringSubmatch(text); found != nil {
			return cmd, found, rest, nil
		}
		if err != nil {
			_ = cmd.Wait() // the error shows its output
			return nil, nil, nil, fmt.Errorf("%s ended:\n%s", line, output.String())
		}
	}
}

var (
	action   = regexp.MustCompile(`action="([^"]*)"`)
	manifest = regexp.MustCompile(`name="manifest" value="([^"]*)"`)
	serves   = regexp.MustCompile(`"message":"pawl serves"`)
)

// setup runs pawl setup and plays the user in the browser: open the page, press GitHub's button, install the App.
func (v *visit) setup(ctx context.Context) error {
	line, began := "pawl setup --github "+v.world.WebURL(), time.Now()
	if v.hook == "webhook" {
		line += " --url http://127.0.0.1:8080"
	}
	cmd, link, rest, err := v.follow(ctx, line, regexp.MustCompile(`(http://127\.0\.0\.1:\d+/[A-Z2-7]{20,})\s*$`))
	if err != nil {
		return err
	}
	page, err := get(link[1])
	if err != nil {
		return err
	}
	form, asks := action.FindStringSubmatch(page), manifest.FindStringSubmatch(page)
	if form == nil || asks == nil {
		return fmt.Errorf("the page has no form:\n%s", page)
	}
	resp, err := http.PostForm(html.UnescapeString(form[1]), url.Values{"manifest": {html.UnescapeString(asks[1])}}) // follows the redirect back
	if err != nil {
		return err
	}
	last, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	_, _ = io.Copy(io.Discard, rest)
	if err = errors.Join(err, cmd.Wait()); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("setup: %s %w\n%s", resp.Status, err, last)
	}
	v.steps = append(v.steps, step{text: strings.ReplaceAll(line, v.world.WebURL(), "HOST"), typed: true, took: time.Since(began)})
	return v.world.Install(repo)
}

func get(address string) (string, error) {
	resp, err := http.Get(address)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// serve runs pawl serve, comments on an issue, and waits for a verified pull request.
func (v *visit) serve(ctx context.Context) error {
	line, began := "pawl serve --config pawl.yml", time.Now()
	cmd, _, rest, err := v.follow(ctx, "exec "+line, serves)
	if err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // stops the server
		_, _ = io.Copy(io.Discard, rest)
		_ = cmd.Wait()
	}()
	v.steps = append(v.steps, step{text: line, typed: true, took: time.Since(began)})
	if hook := v.world.Manifests()[0].Hook.URL; v.hook == "webhook" {
		v.world.SetWebhookURL(hook)
	}
	began = time.Now()
	n, err := v.world.OpenIssue(repo, user, "The greeting is missing", "Create hello.txt with a short greeting.")
	if err != nil {
		return err
	}
	if _, err := v.world.Comment(repo, n, user, "/pawl solve"); err != nil {
		return err
	}
	go io.Copy(io.Discard, rest)
	for {
		if pulls := v.world.Pulls(repo); len(pulls) > 0 && !pulls[0].Pull.Draft {
			v.steps = append(v.steps, step{text: "/pawl solve on an issue, until its pull request is verified", took: time.Since(began)})
			v.took = time.Since(v.began)
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("there was no verified pull request within %s; the comments are %v", time.Since(began).Round(time.Second), v.world.Comments(repo, n))
		}
	}
}

// table prints the steps. It returns an error if there were too many commands or they took too much time.
func (v *visit) table() error {
	from, bound := "from the sources", fromSources
	if v.built {
		from, bound = "with the program", withProgram
	}
	load, _ := os.ReadFile("/proc/loadavg") // only for information
	fmt.Printf("\nTo the first solved issue %s, by %s (%d processors, load %.5s):\n\n", from, v.hook, runtime.NumCPU(), load)
	typed := 0
	for i, s := range v.steps {
		number := " "
		if s.typed {
			number = fmt.Sprint(i + 1)
			typed++
		}
		if s.work >= time.Second { // on a busy machine a command takes longer than its CPU time
			s.text += fmt.Sprintf(" (%.0f s of processors)", s.work.Seconds())
		}
		fmt.Printf("  %s  %7.1f s  %s\n", number, s.took.Seconds(), s.text)
	}
	if v.took == 0 {
		fmt.Printf("     not finished\n")
		return nil // play reports why
	}
	fmt.Printf("     %7.1f s  in all, %s\n", v.took.Seconds(), policy.Plural(typed, "command"))
	if v.took > bound || typed > maxCommands {
		return fmt.Errorf("%d commands and %s by %s; at most %d and %s", typed, v.took.Round(time.Second), v.hook, maxCommands, bound)
	}
	return nil
}
