package agent

import "time"

// toolServer is the name under which the CLIs know the server of the test tool.
const toolServer = "pawl"

// Bounds for the test tool. Tests may take thirty minutes, and the tool itself
// gives up before a CLI does, whose defaults begin at 60 s.
const (
	toolStartup = 30 * time.Second
	toolTimeout = 35 * time.Minute
)
