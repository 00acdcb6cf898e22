package agent

import (
	"slices"
	"strings"
)

// background lists tasks that an agent started without waiting for them. A CLI ends them with the session.
type background struct {
	running, cut []string
}

const maxTasks = 64

func (b *background) add(e Event) {
	switch e.Kind {
	case Message, ToolCall:
		b.cut = nil // the agent continued, so it has the task's result
	default:
	}
	if e.Task == "" || len(b.running)+len(b.cut) >= maxTasks {
		return
	}
	task := Shorten(e.Task, 80)
	b.running = slices.DeleteFunc(b.running, func(other string) bool { return other == task })
	switch e.TaskEnd {
	case "":
		b.running = append(b.running, task)
	case "killed", "stopped", "cancelled", "aborted":
		b.cut = append(b.cut, task)
	}
}

// left names the unfinished tasks at the session's end.
func (b *background) left() string {
	return strings.Join(slices.Concat(b.cut, b.running), ", ")
}
