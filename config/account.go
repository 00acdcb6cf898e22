package config

import (
	"fmt"
	"slices"
)

// Account is a provider's key or a file with a CLI's login. Backends name it in their accounts.
type Account struct {
	Name           string `yaml:"name"`
	Provider       string `yaml:"provider"`
	CredentialFile string `yaml:"credential_file"`
}

// AccountNames returns the names of a backend's accounts; never empty.
func (b Backend) AccountNames() []string {
	if len(b.Accounts) == 0 {
		return []string{b.Account}
	}
	return b.Accounts
}

// OnAccount returns a backend with the provider or login of one of its accounts. A backend without accounts, or
// without an account of this name, stays unchanged.
func (c Server) OnAccount(b Backend, name string) Backend {
	if !slices.Contains(b.Accounts, name) {
		return b
	}
	for _, a := range c.Accounts {
		if a.Name == name {
			b.Account, b.Provider, b.CredentialFile = a.Name, a.Provider, a.CredentialFile
		}
	}
	return b
}

// EachAccount returns a copy of a backend for each of its accounts.
func (c Server) EachAccount(b Backend) (all []Backend) {
	for _, name := range b.AccountNames() {
		all = append(all, c.OnAccount(b, name))
	}
	return all
}

// CredentialFiles returns the files with CLIs' logins, sorted, without duplicates.
func (c Server) CredentialFiles() (files []string) {
	for _, b := range c.Backends {
		files = append(files, b.CredentialFile)
	}
	for _, a := range c.Accounts {
		files = append(files, a.CredentialFile)
	}
	slices.Sort(files)
	return slices.DeleteFunc(slices.Compact(files), func(name string) bool { return name == "" })
}

func (s *source) validateAccounts(c Server) {
	first := map[string]int{}
	for i, a := range c.Accounts {
		key := fmt.Sprintf("accounts[%d]", i)
		s.validateName(key+".name", a.Name, "account")
		if j, again := first[a.Name]; again && a.Name != "" {
			s.add(key+".name", "%q is also the name of accounts[%d]", a.Name, j)
		}
		first[a.Name] = i
		both, none := a.Provider != "" && a.CredentialFile != "", a.Provider == "" && a.CredentialFile == ""
		s.addIf(both, key+".credential_file", "is given together with provider; keep one of the two")
		s.addIf(none, key+".provider", "is missing; name one of providers, or give a credential_file")
		_, known := c.Provider(a.Provider)
		s.addIf(!known && a.Provider != "", key+".provider", "%s is not one of providers", s.found(key+".provider"))
	}
}

// validateBackendAccounts checks a backend's list of accounts.
func (s *source) validateBackendAccounts(key string, b Backend, c Server) {
	for _, one := range []struct {
		key string
		set bool
	}{{"account", s.set(key + ".account")}, {"provider", b.Provider != ""}, {"credential_file", b.CredentialFile != ""}} {
		s.addIf(one.set, key+"."+one.key, "is given together with accounts; keep one of the two")
	}
	for i, name := range b.Accounts {
		at := fmt.Sprintf("%s.accounts[%d]", key, i)
		known := slices.ContainsFunc(c.Accounts, func(a Account) bool { return a.Name == name })
		s.addIf(!known, at, "%s is not one of accounts; add it there", s.found(at))
		s.addIf(slices.Index(b.Accounts, name) < i, at, "%s is listed twice", s.found(at))
		s.validateLogin(at, c.OnAccount(b, name), c)
		s.validateAlike(at, name, b, c)
	}
}

// validateAlike checks that an account uses the protocol of the backend's first account. A CLI with several protocols
// gets one model name, which is valid for only one of them.
func (s *source) validateAlike(at, name string, b Backend, c Server) {
	if len(CLIOf(b.Kind).Protocols) < 2 {
		return
	}
	first, this := c.access(b, b.Accounts[0]), c.access(b, name)
	if first == "" || this == "" {
		return // reported as an unknown account
	}
	s.addIf(this != first, at, "account %s has %s, but account %s has %s; give each its own backend, because their models have different names",
		quote(name), this, quote(b.Accounts[0]), first)
}

// access returns how an account reaches a model provider; empty for an unknown account or provider.
func (c Server) access(b Backend, account string) string {
	on := c.OnAccount(b, account)
	p, known := c.Provider(on.Provider)
	switch {
	case on.CredentialFile != "":
		return "a credential_file"
	case known && p.Protocol != "":
		return "a provider with protocol " + p.Protocol
	}
	return ""
}

// validateLogin checks that an account can serve the backend's kind.
func (s *source) validateLogin(at string, b Backend, c Server) {
	p, _ := c.Provider(b.Provider)
	want := ProtocolOf(b.Kind)
	fits := want == "" || p.Protocol == want || p.Protocol == ""
	s.addIf(!fits, at, "account %s uses a provider with protocol %s, but %s needs %s", quote(b.Account), p.Protocol, b.Kind, want)
	needsProvider := b.Kind == Command && b.CredentialFile != ""
	s.addIf(needsProvider, at, "account %s has a credential_file, which is for %s only", quote(b.Account), listed(CLIs(), "and"))
	needsModel := b.Kind == OpenCode && b.Model == "" && b.Provider == ""
	s.addIf(needsModel, at, "account %s has no provider, so opencode needs a model such as anthropic/claude-sonnet-4-5", quote(b.Account))
}
