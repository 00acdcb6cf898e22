package checkrun

import "fmt"

// maxAnnotations is what GitHub takes in one request.
const maxAnnotations = 50

// configPath is the file that a problem without a path belongs to.
const configPath = ".github/pawl.yml"

// annotations marks the configuration problems in their files. Messages are
// plain text there.
func annotations(ps []Problem) []Annotation {
	var out []Annotation
	for _, p := range ps[:min(len(ps), maxAnnotations)] {
		n := max(1, p.Line)
		out = append(out, Annotation{
			Path: problemPath(p), StartLine: n, EndLine: n, Level: "failure",
			Title: "Pawl configuration", Message: line(p.Message, 1_000),
		})
	}
	return out
}

func problemPath(p Problem) string {
	if path := line(p.Path, 250); path != "" {
		return path
	}
	return configPath
}

// problems are the first configuration problems as escaped lines.
func problems(pg *page, ps []Problem) []string {
	var lines []string
	for i, p := range ps {
		if i == 10 {
			return append(lines, "and "+plural(len(ps)-10, "more problem"))
		}
		where := problemPath(p)
		if p.Line > 0 {
			where = fmt.Sprintf("%s:%d", where, p.Line)
		}
		lines = append(lines, code(where)+" "+prose(p.Message, pg.now))
	}
	return lines
}
