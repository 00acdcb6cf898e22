package attempt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
)

// Item holds a piece of context: a remark, a linked thread, or a list.
type Item struct {
	By    string // login, or empty
	Role  string // such as maintainer; empty without write permission
	Bot   bool
	Where string // such as a.go:12
	At    time.Time
	Text  string
	Lines Lines // zero if the item is about no lines
}

// Lines names lines of a file in a commit, starting at 1.
type Lines struct {
	Commit, Path string
	First, Last  int
}

// Part holds the items of one kind, oldest first.
type Part struct {
	Name  string // plural name of the items, such as comments
	Items []Item
	Of    int // total on GitHub
	// Share limits the part to 1/Share of the remaining bytes.
	Share int
	Notes []string // omitted items and reasons
	Open  []int64  // ids of review comments that are not outdated
	// Files maps names in the context folder to contents. An item's Where names its file.
	Files map[string]string
}

// Context limits in bytes.
const (
	maxItem    = 4 << 10 // an item in the prompt
	maxBotItem = 600     // a bot's item; bots put the important text first
	maxWhole   = 1 << 20 // a file in the context folder
)

// Compose selects the newest items of each part. It returns the prompt text within the limit, a manifest, and files
// with the complete parts.
func Compose(parts []Part, bytes int) (prompt string, manifest []policy.Manifest, files map[string]string) {
	files = map[string]string{}
	var b promptText
	for _, p := range parts {
		if len(p.Items) == 0 && len(p.Notes) == 0 {
			continue
		}
		room := bytes / max(1, p.Share)
		t := policy.Manifest{What: p.Name, Of: max(p.Of, len(p.Items)), Notes: p.Notes}
		var kept []string
		for _, i := range slices.Backward(p.Items) {
			shown, cut := i.short()
			if len(shown) > room {
				break
			}
			room -= len(shown)
			bytes -= len(shown)
			t.Kept, t.Cut = t.Kept+1, t.Cut+cut
			kept = append(kept, shown)
		}
		slices.Reverse(kept)
		var whole strings.Builder
		for _, i := range p.Items {
			whole.WriteString(i.render(i.Text) + "\n")
		}
		name := strings.ReplaceAll(p.Name, " ", "-") + ".md"
		if whole.Len() > 0 {
			files[name] = render.Tail(whole.String(), maxWhole)
		}
		maps.Copy(files, p.Files)
		title := t.String()
		if len(p.Files) > 0 {
			title += "; they are in $HOME/" + contextDir
		} else if t.Kept < len(p.Items) || t.Cut > 0 {
			title += "; more is in $HOME/" + contextDir + "/" + name
		}
		manifest = append(manifest, t)
		text := cmp.Or(strings.Join(kept, "\n"), "(none)")
		b.section(title, text, len(text))
	}
	return b.String(), manifest, files
}

const contextDir = ".pawl/context"

// Pictures returns the files attached by users with write permission.
func Pictures(parts []Part) (names []string) {
	for _, p := range parts {
		for _, i := range p.Items {
			if _, ok := p.Files[i.Where]; ok && i.Role != "" {
				names = append(names, i.Where)
			}
		}
	}
	return names
}

// short shortens the item for the prompt and counts the omitted lines.
func (i Item) short() (shown string, cut int) {
	most := maxItem
	if i.Bot {
		most = maxBotItem
	}
	if len(i.Text) <= most {
		return i.render(i.Text), 0
	}
	head := strings.ToValidUTF8(i.Text[:most], "")
	cut = 1 + strings.Count(i.Text[len(head):], "\n")
	return i.render(fmt.Sprintf("%s\n[cut: %s]", head, policy.Plural(cut, "line"))), cut
}

// render formats an item with its author. Text from users without write permission is quoted, so that it cannot
// imitate another item.
func (i Item) render(text string) string {
	text = strings.TrimSpace(text)
	var head []string
	if i.By != "" {
		by, trusted := i.speaker()
		head = append(head, by)
		if !trusted {
			text = "> " + strings.ReplaceAll(text, "\n", "\n> ")
		}
	}
	if i.Where != "" {
		head = append(head, i.Where)
	}
	if !i.At.IsZero() {
		head = append(head, i.At.UTC().Format("2006-01-02 15:04 UTC"))
	}
	if len(head) == 0 {
		return text + "\n"
	}
	return "[" + oneLine(strings.Join(head, ", ")) + "]\n" + text + "\n"
}

func (i Item) speaker() (by string, trusted bool) {
	switch {
	case i.Bot:
		return "the bot " + i.By, false
	case i.Role == "":
		return i.By + ", not known to have write permission", false
	}
	return i.Role + " " + i.By, true
}

// Render formats the whole item as in the prompt.
func (i Item) Render() string { return i.render(i.Text) }

// NewItem returns an item with the visible part of a text. An empty login means a deleted account.
func NewItem(by, role string, bot bool, at time.Time, where, body string) Item {
	return Item{By: cmp.Or(by, "a deleted account"), Role: role, Bot: bot, At: at, Where: where, Text: feedback.Visible(body)}
}
