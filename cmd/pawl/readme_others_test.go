package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawlbot/pawl/config"
)

// knows fails where the program has not these flags. What follows -- or a first word is not looked at.
func (r *readme) knows(line string, args []string) {
	r.t.Helper()
	code, help, _ := pawl(r.t, r.dir, nil, args[0], "--help")
	for _, arg := range args[1:] {
		if name, _, _ := strings.Cut(arg, "="); strings.HasPrefix(name, "--") && !regexp.MustCompile(regexp.QuoteMeta(name)+`\b`).MatchString(help) {
			r.t.Errorf("%s: pawl %s has no %s", line, args[0], name)
		}
	}
	if code != exitDone {
		r.t.Errorf("%s: there is no pawl %s", line, args[0])
	}
}

// agentImage is one that a release has.
var agentImage = regexp.MustCompile(`^ghcr\.io/pawlbot/pawl:latest-(\w+)$`)

func (r *readme) docker(line string, args []string) {
	r.t.Helper()
	compose := string(file(r.t, "config/deploy/compose.yml"))
	switch args[0] {
	case "run":
		i := slices.IndexFunc(args, agentImage.MatchString)
		if i < 0 || !slices.Contains(config.CLIs(), agentImage.FindStringSubmatch(args[i])[1]) {
			r.t.Fatalf("%s: no release has that image", line)
		}
		if !strings.Contains(string(file(r.t, "Dockerfile")), "\nVOLUME /data\n") || !slices.Contains(args, "pawl:/data") {
			r.t.Errorf("%s: what Pawl keeps is lost with the container", line)
		}
		if i+1 < len(args) {
			r.knows(line, args[i+1:])
			return
		}
		for _, option := range []string{"seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"} {
			if !slices.Contains(args, option) || !strings.Contains(compose, "- "+option+"\n") {
				r.t.Errorf("%s: without %s bubblewrap does not work", line, option)
			}
		}
	case "compose":
		if args[1] != "-f" || args[2] != "config/deploy/compose.yml" {
			r.t.Fatalf("%s: names no file", line)
		}
		switch rest := args[3:]; rest[0] {
		case "up":
		case "run", "exec":
			i := slices.Index(rest, "pawl") // the service
			command := rest[i+1:]
			if rest[0] == "exec" {
				command = command[1:]
			}
			if i < 0 || !strings.Contains(compose, "\n  pawl:\n") {
				r.t.Fatalf("%s: there is no such service", line)
			}
			r.knows(line, command)
		default:
			r.t.Errorf("%s: nobody tries %s", line, rest[0])
		}
	case "exec":
		if args[1] != "pawl" || args[2] != "pawl" {
			r.t.Fatalf("%s: another container", line)
		}
		r.knows(line, args[3:])
	default:
		r.t.Errorf("%s: nobody tries docker %s", line, args[0])
	}
}

func (r *readme) kubectl(line string, args []string) {
	r.t.Helper()
	set := string(file(r.t, "config/deploy/kubernetes/pawl.yaml"))
	switch {
	case args[0] == "apply" && args[1] == "-f":
		file(r.t, args[2])
	case slices.Equal(args[:6], []string{"--namespace", "pawl", "create", "secret", "generic", "pawl"}) && strings.Contains(set, "secretName: pawl\n"):
		for _, arg := range args[6:] {
			kind, name, _ := strings.Cut(arg, "=")
			name, value, _ := strings.Cut(name, "=")
			switch kind {
			case "--from-file":
				if _, err := os.Stat(filepath.Join(r.dir, name)); err != nil || !strings.Contains(set, "{key: "+name+", path: "+name+"}") {
					r.t.Errorf("%s: %s is not what setup writes and the pods read: %v", line, name, err)
				}
			case "--from-literal":
				if value != "a-key" || !strings.Contains(set, "secretKeyRef: {name: pawl, key: "+name+"}") {
					r.t.Errorf("%s: the pods do not take %s=%s", line, name, value)
				}
			}
		}
	default:
		r.t.Errorf("%s: nobody tries it", line)
	}
}

func (r *readme) helm(line string, args []string) {
	r.t.Helper()
	if !slices.Equal(args[:5], []string{"install", "pawl", "oci://ghcr.io/pawlbot/charts/pawl", "--namespace", "pawl"}) || !strings.Contains(string(file(r.t, ".github/workflows/release.yml")), "OWNER,,}/charts\"\n") {
		r.t.Errorf("%s: no release has that chart", line)
	}
	var values map[string]any
	r.must(yaml.Unmarshal(file(r.t, "config/deploy/helm/pawl/values.yaml"), &values))
	for i, arg := range args[5:] {
		if key, value, _ := strings.Cut(arg, "="); args[5+i-1] == "--set" && (values[key] == nil || key == "agent" && !slices.Contains(config.CLIs(), value)) {
			r.t.Errorf("%s: the chart has no value %s", line, arg)
		}
	}
}

func (r *readme) makes(args []string) {
	r.t.Helper()
	for _, target := range args {
		if !strings.Contains(string(file(r.t, "Makefile")), "\n"+target+":") {
			r.t.Errorf("the Makefile has no %s", target)
		}
		if !strings.Contains(string(file(r.t, ".ci/run")), "\nmake "+target+"\n") {
			r.t.Errorf("CI does not run make %s", target)
		}
	}
}

func (r *readme) goInstall(line string, args []string) {
	r.t.Helper()
	mod := string(file(r.t, "go.mod"))
	module := regexp.MustCompile(`(?m)^module (\S+)$`).FindStringSubmatch(mod)[1]
	if !slices.Equal(args, []string{"install", module + "/cmd/pawl@latest"}) {
		r.t.Errorf("%s: the program is %s/cmd/pawl", line, module)
	}
	if bad := regexp.MustCompile(`(?m)^(replace|exclude)\b`).FindString(mod); bad != "" {
		r.t.Errorf("go install refuses a module whose go.mod has %s", bad)
	}
}
