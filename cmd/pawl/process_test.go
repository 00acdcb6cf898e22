package main

import (
	"fmt"
	"os"
	"strings"
)

// peak is the most memory that the server ever had, in KiB.
func (r *rig) peak() (kib int) {
	r.T.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.Server.Cmd.Process.Pid))
	r.Must(err)
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		r.T.Fatal(err)
	}
	return kib
}
