package server

import (
	"strings"
	"testing"
)

func TestAProgramWhereTheSandboxHasItsFoldersIsRefused(t *testing.T) {
	for path, refused := range map[string]bool{
		"/pawl": true, "/pawl/work/pawl": true, "/pawl/home/bin/pawl": true,
		"/usr/local/bin/pawl": false, "/pawl/bin/pawl": false, "/pawl2": false, "/opt/pawl": false,
	} {
		err := misplaced(path)
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "move it") {
			t.Errorf("%s: %v, want refused %v", path, err, refused)
		}
	}
}
