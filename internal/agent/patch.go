package agent

import "strings"

// patchEdits reads a patch in the "*** Begin Patch" form: one edit for each
// file section. Text around the patch does not matter.
func patchEdits(patch string) []Edit {
	var all []Edit
	var path string
	var body, before, after strings.Builder
	add := func() {
		if path != "" && len(all) < maxEdits {
			e := replaced(path, before.String(), after.String())
			// The lines around a change tell one place from another.
			whole, _ := fold(body.String())
			e.Key = mixKeys(e.Key, whole)
			all = append(all, e)
		}
		path = ""
		body.Reset()
		before.Reset()
		after.Reset()
	}
	for line := range strings.Lines(patch) {
		if rest, ok := strings.CutPrefix(line, "*** "); ok {
			verb, name, _ := strings.Cut(rest, " File: ")
			switch {
			case verb == "Add" || verb == "Update" || verb == "Delete":
				add()
				path = strings.TrimSpace(name)
				body.WriteString(verb + "\n")
			case strings.HasPrefix(rest, "End Patch"):
				add()
			}
			continue
		}
		if path == "" {
			continue
		}
		body.WriteString(line)
		switch line[0] {
		case '-':
			before.WriteString(line[1:])
		case '+':
			after.WriteString(line[1:])
		}
	}
	add()
	return all
}
