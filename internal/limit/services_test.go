package limit

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

// refused is a refusal with the kind that a maintainer would give it.
type refused struct {
	Service string
	Status  int
	Kind    policy.Ending
	Body    json.RawMessage
}

// loadRefusals reads wordings of services after public reports. Their kinds were written down before the families of
// words were tried on them.
func loadRefusals(t *testing.T) (all []refused) {
	t.Helper()
	f, err := os.Open("../../testdata/refusals/services.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r refused
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func TestRefusalsOfManyServicesAreReadByFamiliesOfWords(t *testing.T) {
	right, all := 0, loadRefusals(t)
	for _, c := range all {
		e := Answer(c.Status, nil, c.Body)
		e.Now = resetNow
		if got := Read(e); got.Kind == c.Kind {
			right++
		} else {
			t.Errorf("%s %d %s: %q, want %s", c.Service, c.Status, c.Body, got.Kind, c.Kind)
		}
	}
	t.Logf("%d of %d", right, len(all))
}
