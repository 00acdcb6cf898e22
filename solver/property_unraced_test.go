//go:build !race

package solver_test

// raced says that the race detector is on.
const raced = false
