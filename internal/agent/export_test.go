package agent

// Times of the runner that tests wait for.
const (
	LingerTime = lingerTime
	QuietWait  = quietWait
)
