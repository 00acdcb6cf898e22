package config

import (
	"fmt"
	"log/slog"
)

// hidden is what every rendering of a Secret shows.
const hidden = "[hidden]"

// Secret is a value that must not reach a log, a page or an error. Every way of
// printing it shows a placeholder; Reveal gives the value. The zero value is the
// empty secret.
type Secret struct {
	value string
}

// NewSecret wraps a value.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal gives the value. The caller must not print it or put it on a command
// line.
func (s Secret) Reveal() string { return s.value }

// Empty reports whether there is no value.
func (s Secret) Empty() bool { return s.value == "" }

// Equal reports whether two secrets hold the same value. It serves comparisons
// of configurations, not authentication: it does not take constant time.
func (s Secret) Equal(other Secret) bool { return s.value == other.value }

// String hides the value.
func (s Secret) String() string { return hidden }

// GoString hides the value from %#v.
func (s Secret) GoString() string { return hidden }

// Format hides the value from every verb of the fmt package.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, hidden) }

// MarshalText hides the value from JSON, YAML and zerolog.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// UnmarshalText takes the text as the value.
func (s *Secret) UnmarshalText(text []byte) error {
	s.value = string(text)
	return nil
}
