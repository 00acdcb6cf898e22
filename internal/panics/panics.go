// Package panics turns panics of Pawl's own code into errors, so that a panic ends one attempt, thread or task instead
// of the process.
package panics

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pawlbot/pawl/internal/wait"
)

// Error is a panic. Its message leaves out the stack, which belongs in the log.
type Error struct {
	Value any
	Stack string
}

func (e *Error) Error() string {
	return fmt.Sprintf("a panic in Pawl's own code; the server's log has the stack: %v", e.Value)
}

// Try runs do and returns its panic as an *Error.
func Try(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Error{Value: v, Stack: string(debug.Stack())}
		}
	}()
	return do()
}

// Stack returns the stack of a panic in err; empty for none.
func Stack(err error) string {
	if panicked, ok := errors.AsType[*Error](err); ok {
		return panicked.Stack
	}
	return ""
}

// pause is the time before a task begins again after a panic. Our choice.
const pause = 10 * time.Second

// Repeat runs a background task until it returns. After a panic it calls report, and restarts the task after 10 s
// unless ctx ends.
func Repeat(ctx context.Context, do func(), report func(*Error)) {
	for {
		err := Try(func() error { do(); return nil })
		panicked, ok := errors.AsType[*Error](err)
		if !ok {
			return
		}
		report(panicked)
		if wait.For(ctx, pause) != nil {
			return
		}
	}
}
