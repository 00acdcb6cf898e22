package limit

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

// refused is a refusal with the kind that a maintainer assigned.
type refused struct {
	Service string
	Status  int
	Kind    policy.Ending
	Body    json.RawMessage
	Text    string
}

// loadRefusals reads a list of wordings from public reports: services' answers, or words alone. Their kinds were assigned
// before the classifier was tried on them.
func loadRefusals(t *testing.T, list string) (all []refused) {
	t.Helper()
	f, err := os.Open("../../testdata/refusals/" + list)
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

func TestRefusalsOfManyServices(t *testing.T) {
	for _, c := range loadRefusals(t, "services.jsonl") {
		e := Answer(c.Status, nil, c.Body)
		e.Now = resetNow
		if got := Read(e); got.Kind != c.Kind {
			t.Errorf("%s %d %s: %q, want %s", c.Service, c.Status, c.Body, got.Kind, c.Kind)
		}
	}
}

func TestRefusalsInWordsAlone(t *testing.T) {
	for _, c := range loadRefusals(t, "words.jsonl") {
		if got := Read(Evidence{Status: c.Status, Message: c.Text, Now: resetNow}); got.Kind != c.Kind {
			t.Errorf("%d %q: %q, want %q", c.Status, c.Text, got.Kind, c.Kind)
		}
	}
}
