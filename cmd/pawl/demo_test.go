package main

import (
	"strings"
	"testing"
)

func TestDemoPasses(t *testing.T) {
	t.Parallel()
	var out, log strings.Builder
	if code := run([]string{"demo"}, &out, &log); code != exitDone {
		t.Errorf("exit code %d: %s\n%s", code, &log, &out)
	}
}
