//go:build race

package solver_test

// raced reports whether the race detector is on.
const raced = true
