package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// StartKeys lists keys that need a restart. Others apply from each thread's next step.
func StartKeys() []string {
	return []string{"server", "github", "database", "data_dir", "sandbox", "images", "gateway", "workers"}
}

// reloadedKeys lists the keys inside StartKeys that need no restart.
var reloadedKeys = []string{"sandbox.read_only"}

// Reloaded returns the configuration that takes effect without a restart when c's file changes to next.
func (c *Server) Reloaded(next Server) *Server {
	was, is := reflect.ValueOf(*c), reflect.ValueOf(&next).Elem()
	readOnly, moved := next.Sandbox.ReadOnly, c.Gateway.URL != next.Gateway.URL
	_, index := fields(is.Type())
	for _, key := range StartKeys() {
		is.FieldByIndex(index[key]).Set(was.FieldByIndex(index[key]))
	}
	next.Sandbox.ReadOnly = readOnly
	if moved { // until the restart the old gateway.url applies, and the new providers' keys do not fit it
		next.Providers = c.Providers
	}
	next.Providers = slices.Clone(next.Providers)
	next.relay()
	return &next
}

// Change is a key whose value differs.
type Change struct {
	Key      string
	From, To string // for display, without secrets
}

func (c Change) String() string { return c.Key + ": " + c.From + " → " + c.To }

// AtStart reports whether the change needs a restart.
func (c Change) AtStart() bool {
	first, _, _ := strings.Cut(c.Key, ".")
	return slices.Contains(StartKeys(), first) && !slices.Contains(reloadedKeys, c.Key)
}

// Changes lists differences in key order.
func (c *Server) Changes(next *Server) []Change {
	return changes("", reflect.ValueOf(*c), reflect.ValueOf(*next))
}

// areGroups reports whether a type is a list of groups of keys.
func areGroups(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
}

func changes(key string, a, b reflect.Value) (all []Change) {
	switch {
	case reflect.DeepEqual(a.Interface(), b.Interface()), sameSecret(a, b):
		return nil
	case a.Kind() == reflect.Struct:
		keys, index := fields(a.Type())
		for _, k := range keys {
			all = append(all, changes(strings.TrimPrefix(key+"."+k, "."), a.FieldByIndex(index[k]), b.FieldByIndex(index[k]))...)
		}
		if len(keys) > 0 {
			return all
		}
	case areGroups(a.Type()) && a.Len() == b.Len():
		for i := range a.Len() {
			all = append(all, changes(fmt.Sprintf("%s[%d]", key, i), a.Index(i), b.Index(i))...)
		}
		return all
	}
	return []Change{{key, quote(fmt.Sprint(a.Interface())), quote(fmt.Sprint(b.Interface()))}}
}

// sameSecret reports whether two values are equal secrets, regardless of their variables.
func sameSecret(a, b reflect.Value) bool {
	one, ok := a.Interface().(Secret)
	return ok && one.Equal(b.Interface().(Secret))
}
