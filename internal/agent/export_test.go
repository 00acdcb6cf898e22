package agent

// Durations of the runner that tests wait for.
const (
	LingerTime = lingerTime
	QuietWait  = quietWait
)
