package fakegithub

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

type obj = map[string]any

const docs = "https://docs.github.com/rest"

type reply struct {
	status int
	header http.Header
	body   any // nil: no content
	raw    []byte
}

func ok(body any) *reply { return &reply{status: http.StatusOK, header: http.Header{}, body: body} }

// created answers with the new object's address, if it has one.
func created(body obj) *reply {
	rep := &reply{status: http.StatusCreated, header: http.Header{}, body: body}
	if url, ok := body["url"].(string); ok {
		rep.header.Set("Location", url)
	}
	return rep
}

// problem returns an error in GitHub's form.
func problem(status int, message string) *reply {
	return &reply{status: status, header: http.Header{}, body: obj{"message": message,
		"documentation_url": docs, "status": strconv.Itoa(status)}}
}

func notFound() *reply { return problem(http.StatusNotFound, "Not Found") }

// invalid returns the answer of GitHub's schema check.
func invalid(why string) *reply {
	return problem(http.StatusUnprocessableEntity, "Invalid request.\n\n"+why)
}

// failed returns the answer of GitHub's model validation.
func failed(resource, field, code, message string) *reply {
	detail := obj{"resource": resource, "code": code}
	if field != "" {
		detail["field"] = field
	}
	if message != "" {
		detail["message"] = message
	}
	rep := problem(http.StatusUnprocessableEntity, "Validation Failed")
	rep.body.(obj)["errors"] = []obj{detail}
	return rep
}

// bytes encodes the body once, without escaping HTML, like GitHub.
func (rep *reply) bytes() []byte {
	if rep.raw == nil && rep.body != nil {
		rep.raw = encode(rep.body)
	}
	return bytes.Clone(rep.raw)
}

func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// String returns the reply as an error text.
func (rep *reply) String() string { return strconv.Itoa(rep.status) + " " + string(rep.bytes()) }

func (rep *reply) write(w http.ResponseWriter) {
	for key, values := range rep.header {
		w.Header()[http.CanonicalHeaderKey(key)] = values
	}
	w.Header().Set("X-GitHub-Media-Type", "github.v3; format=json")
	body := rep.bytes()
	if body != nil {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	w.WriteHeader(rep.status)
	w.Write(body)
}

// page selects a page by per_page (default 30, at most 100) and page, and adds the Link header. wrap makes the body from
// the page and the total.
func page[T any](c *call, list []T, render func(T) obj, wrap func([]obj, int) any) *reply {
	size := clamp(c.query("per_page", "30"), 30, 100)
	number := clamp(c.query("page", "1"), 1, 1<<30)
	last := max(1, (len(list)+size-1)/size)
	from, to := min((number-1)*size, len(list)), min(number*size, len(list))
	out := make([]obj, 0, to-from)
	for _, item := range list[from:to] {
		out = append(out, render(item))
	}
	rep := ok(wrap(out, len(list)))
	var links []string
	link := func(n int, rel string) {
		links = append(links, fmt.Sprintf(`<%s>; rel="%s"`, c.link("page", strconv.Itoa(n)), rel))
	}
	if number > 1 {
		link(number-1, "prev")
	}
	if number < last {
		link(number+1, "next")
		link(last, "last")
	}
	if number > 1 {
		link(1, "first")
	}
	if len(links) > 0 {
		rep.header.Set("Link", strings.Join(links, ", "))
	}
	return rep
}

func array(list []obj, _ int) any { return list }

// link returns this call's address with one query parameter replaced.
func (c *call) link(key, value string) string {
	u := url.URL{Path: "/api/v3" + c.r.URL.Path}
	q := c.r.URL.Query()
	q.Set(key, value)
	u.RawQuery = q.Encode()
	return c.base + u.String()
}

func clamp(text string, otherwise, most int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return otherwise
	}
	return min(n, most)
}

func fmtID(id int64) string { return strconv.FormatInt(id, 10) }

func requestID() string {
	b := make([]byte, 8)
	rand.Read(b)
	return fmt.Sprintf("%X:%X:%X", b[:2], b[2:5], b[5:])
}
