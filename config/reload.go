package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// StartKeys are what only a start reads of the server's file. Everything else holds from the next step of each thread
// on when the file changes.
func StartKeys() []string {
	return []string{"server", "github", "database", "data_dir", "sandbox", "images", "workers"}
}

// reloadedKeys are those below a StartKey that hold at once.
var reloadedKeys = []string{"sandbox.read_only"}

// Reloaded is what a server goes on with that runs on c and finds next in its file.
func (c *Server) Reloaded(next Server) *Server {
	was, is := reflect.ValueOf(*c), reflect.ValueOf(&next).Elem()
	readOnly := next.Sandbox.ReadOnly
	_, index := fields(is.Type())
	for _, key := range StartKeys() {
		is.FieldByIndex(index[key]).Set(was.FieldByIndex(index[key]))
	}
	next.Sandbox.ReadOnly = readOnly
	return &next
}

// Change is a key whose value differs between two configurations.
type Change struct {
	Key      string
	From, To string // as people read them; a secret is hidden
}

func (c Change) String() string { return c.Key + ": " + c.From + " → " + c.To }

// AtStart reports whether it takes a start for the change to hold.
func (c Change) AtStart() bool {
	first, _, _ := strings.Cut(c.Key, ".")
	return slices.Contains(StartKeys(), first) && !slices.Contains(reloadedKeys, c.Key)
}

// Changes are what differs in another configuration, in the order of the keys.
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

// sameSecret reports whether two values are one secret, wherever each was taken from.
func sameSecret(a, b reflect.Value) bool {
	one, ok := a.Interface().(Secret)
	return ok && one.Equal(b.Interface().(Secret))
}
