package agent

import (
	"fmt"
	"slices"
	"strings"
)

// checkEffort refuses a word that a CLI does not know; the empty effort is the
// CLI's own default.
func checkEffort(cli, effort string, known ...string) error {
	if effort == "" || slices.Contains(known, effort) {
		return nil
	}
	return fmt.Errorf("%q is not an effort of %s: use %s or %s", shorten(effort, 80), cli, strings.Join(known[:len(known)-1], ", "), known[len(known)-1])
}
