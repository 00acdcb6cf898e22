package fakegithub

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Documented limits of the checks API.
const (
	maxActions     = 3
	maxLabel       = 20
	maxDescription = 40
	maxIdentifier  = 20
	maxAnnotations = 50
)

// check validates the parameters against the documented schema; create requires name and head_sha.
func (w checkParams) check(create bool) *reply {
	switch {
	case create && (w.Name == nil || *w.Name == ""):
		return invalid(`"name" wasn't supplied.`)
	case create && (w.HeadSHA == nil || *w.HeadSHA == ""):
		return invalid(`"head_sha" wasn't supplied.`)
	}
	if bad := oneOf("status", w.Status, "queued in_progress completed waiting requested pending"); bad != nil {
		return bad
	}
	if bad := oneOf("conclusion", w.Conclusion, "action_required cancelled failure neutral success skipped timed_out"); bad != nil {
		return bad
	}
	if w.Status != nil && *w.Status == "completed" && w.Conclusion == nil {
		return invalid(`"conclusion" wasn't supplied.`)
	}
	if w.DetailsURL != nil && *w.DetailsURL != "" && !strings.HasPrefix(*w.DetailsURL, "http://") && !strings.HasPrefix(*w.DetailsURL, "https://") {
		return failed("CheckRun", "details_url", "custom", "details_url must use http or https scheme")
	}
	if bad := w.checkActions(); bad != nil {
		return bad
	}
	return w.checkOutput(create)
}

func oneOf(field string, value *string, allowed string) *reply {
	if value == nil || slices.Contains(strings.Fields(allowed), *value) {
		return nil
	}
	return invalid(fmt.Sprintf("For 'properties/%s', %s is not a member of %q.", field, *value, strings.Fields(allowed)))
}

func (w checkParams) checkActions() *reply {
	if w.Actions == nil {
		return nil
	}
	if n := len(*w.Actions); n > maxActions {
		return invalid(fmt.Sprintf("No more than %d items are allowed; %d were supplied.", maxActions, n))
	}
	for _, a := range *w.Actions {
		for _, f := range []struct {
			name, value string
			most        int
		}{{"label", a.Label, maxLabel}, {"description", a.Description, maxDescription}, {"identifier", a.Identifier, maxIdentifier}} {
			if f.value == "" {
				return invalid(fmt.Sprintf("%q wasn't supplied.", f.name))
			}
			if n := utf8.RuneCountInString(f.value); n > f.most {
				return invalid(fmt.Sprintf("For 'properties/%s', only %d characters are allowed; %d were supplied.", f.name, f.most, n))
			}
		}
	}
	return nil
}

func (w checkParams) checkOutput(create bool) *reply {
	if w.Output == nil {
		return nil
	}
	switch {
	case create && (w.Output.Title == nil || *w.Output.Title == ""):
		return invalid(`"title" wasn't supplied.`)
	case w.Output.Summary == nil:
		return invalid(`"summary" wasn't supplied.`)
	case len(*w.Output.Summary) > maxOutput:
		return invalid(fmt.Sprintf("Only %d characters are allowed; %d were supplied.", maxOutput, len(*w.Output.Summary)))
	case len(w.Output.Annotations) > maxAnnotations:
		return invalid(fmt.Sprintf("No more than %d items are allowed; %d were supplied.", maxAnnotations, len(w.Output.Annotations)))
	}
	for _, a := range w.Output.Annotations {
		for _, field := range []string{"path", "start_line", "end_line", "annotation_level", "message"} {
			if a[field] == nil {
				return invalid(fmt.Sprintf("%q wasn't supplied.", field))
			}
		}
	}
	return nil
}
