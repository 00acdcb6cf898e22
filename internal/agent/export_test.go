package agent

// Times of the runner that tests wait for.
const (
	LingerTime = lingerTime
	DrainTime  = drainTime
	QuietWait  = quietWait
)
