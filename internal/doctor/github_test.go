package doctor

import (
	"strings"
	"testing"
	"time"
)

func TestDoctorComparesTheClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		database, github time.Duration // how far this machine's clock is ahead
		known            bool
		state, says      string
	}{
		{known: true, state: OK, says: "agrees with GitHub's"},
		{github: -50 * time.Second, known: true, state: OK, says: "agrees with GitHub's"},
		{github: -70 * time.Second, known: true, state: Failed, says: "1m10s behind GitHub's; set it"},
		{github: time.Hour, known: true, state: Failed, says: "1h0m0s ahead of GitHub's; set it"},
		{database: time.Hour, known: true, state: Failed, says: "1h0m0s ahead of the database's; set it"},
		{database: -time.Hour, state: Failed, says: "1h0m0s behind the database's; set it"},
	} {
		found := clocks(c.database, c.github, c.known)
		if len(found) != 1 || found[0].State != c.state || !strings.Contains(found[0].Text, c.says) {
			t.Errorf("%s ahead of the database, %s of GitHub: %+v; want %s, %q", c.database, c.github, found, c.state, c.says)
		}
	}
	if found := clocks(0, 0, false); len(found) > 0 {
		t.Errorf("nothing was heard: %+v", found)
	}
}
