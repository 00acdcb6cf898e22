package config

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Load reads the server configuration from a file. env looks up environment
// variables, as os.LookupEnv does. The error is Problems when the file can be
// read and is wrong.
func Load(path string, env func(string) (string, bool)) (Server, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Server{}, fmt.Errorf("read configuration: %w (run pawl setup, or copy config/example.yml there)", err)
	}
	if err != nil {
		return Server{}, fmt.Errorf("read configuration: %w (the user that runs Pawl must be able to read it)", err)
	}
	return Parse(path, data, env)
}

// Parse reads the server configuration from data. The name stands in errors,
// and relative paths in the configuration start from its folder.
func Parse(name string, data []byte, env func(string) (string, bool)) (Server, error) {
	s := newSource(name, env)
	c := Default()
	if s.read(data, &c) {
		for i := range c.Backends {
			c.Backends[i].complete(func(key string) bool { return s.set(fmt.Sprintf("backends[%d].%s", i, key)) })
		}
		s.validateServer(&c)
		s.validateBackends(c.Backends, c.Providers)
		s.validatePolicy(c.Policy)
		s.validateEnv("policy.learning", "judge_env", c.Policy.Learning.JudgeEnv)
	}
	if len(s.problems) > 0 {
		return Server{}, Problems(s.sorted())
	}
	base, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return Server{}, fmt.Errorf("find the folder of %s: %w", name, err)
	}
	c.resolve(base)
	for i := range c.Backends {
		b := &c.Backends[i]
		if p, _ := c.Provider(b.Provider); b.Model == "" {
			b.Model = DefaultModel(b.Kind, p.Protocol)
		}
	}
	return c, nil
}

// resolve makes the paths absolute, so that they mean the same after a change
// of directory and inside an agent's checkout.
func (c *Server) resolve(base string) {
	c.DataDir = under(base, c.DataDir)
	c.Database.Path = under(base, c.Database.Path)
	c.GitHub.App.PrivateKeyFile = under(base, c.GitHub.App.PrivateKeyFile)
	for i := range c.Sandbox.ReadOnly {
		c.Sandbox.ReadOnly[i] = under(base, c.Sandbox.ReadOnly[i])
	}
	if judge := c.Policy.Learning.Judge; len(judge) > 0 && strings.ContainsRune(judge[0], '/') {
		judge[0] = under(base, judge[0])
	}
	for i := range c.Backends {
		c.Backends[i].CredentialFile = under(base, c.Backends[i].CredentialFile)
		// A bare program name is looked up in PATH.
		if argv := c.Backends[i].Argv; len(argv) > 0 && strings.ContainsRune(argv[0], '/') {
			argv[0] = under(base, argv[0])
		}
	}
}

func under(base, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

// Key gives the App's private key in PEM, reading its file if it stands in one.
func (a App) Key() (Secret, error) {
	if !a.PrivateKey.Empty() {
		return a.PrivateKey, nil
	}
	data, err := os.ReadFile(a.PrivateKeyFile)
	if err != nil {
		return Secret{}, fmt.Errorf("read the App's private key: %w (github.app.private_key_file must name the .pem file from the App's settings)", err)
	}
	if problem := keyProblem(data); problem != "" {
		return Secret{}, fmt.Errorf("read the App's private key: %s %s", a.PrivateKeyFile, problem)
	}
	return NewSecret(string(data)), nil
}

// keyProblem says why data is not a private key in PEM; empty when it is one.
func keyProblem(data []byte) string {
	if block, _ := pem.Decode(data); block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY") {
		return "is not a private key in PEM format; it starts with -----BEGIN RSA PRIVATE KEY----- and keeps its line breaks"
	}
	return ""
}
