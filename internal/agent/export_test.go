package agent

// Durations of Run that tests wait for.
const (
	LingerTime = lingerTime
	QuietWait  = quietWait
)
