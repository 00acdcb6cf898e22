package fakegithub_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"
)

// bodies returns the comments of the issue_comment deliveries, in order of arrival.
func bodies(hooks []hook) []string {
	var out []string
	for _, k := range hooks {
		out = append(out, k.at("comment", "body").(string))
	}
	return out
}

func (h *house) talk(texts ...string) {
	h.t.Helper()
	if len(h.Issues(repo)) == 0 {
		_, err := h.OpenIssue(repo, "rita", "talk", "")
		must(h.t, err)
	}
	for _, text := range texts {
		_, err := h.Comment(repo, 1, "rita", text)
		must(h.t, err)
	}
}

func TestDeliveriesArriveInOrderWithGitHubsHeaders(t *testing.T) {
	h := newHouse(t)
	h.talk("1", "2", "3", "4")
	hooks := h.settled("issue_comment")
	if diff := cmp.Diff([]string{"1", "2", "3", "4"}, bodies(hooks)); diff != "" {
		t.Fatal(diff)
	}
	for name, want := range map[string]string{"X-GitHub-Event": "issue_comment", "X-GitHub-Hook-Installation-Target-ID": "7",
		"X-GitHub-Hook-Installation-Target-Type": "integration", "Content-Type": "application/json", "User-Agent": "GitHub-Hookshot", "X-Hub-Signature": "sha1="} {
		if got := hooks[0].header.Get(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestHeldDeliveriesCanBeReorderedAndRepeated(t *testing.T) {
	h := newHouse(t)
	h.talk("0")
	h.Hold()
	h.talk("1", "2", "3")
	if got := h.settled("issue_comment"); len(got) != 1 {
		t.Fatalf("%d arrived while held", len(got))
	}
	held := h.Held()
	h.Release(held[2].GUID, held[0].GUID, held[2].GUID)
	if diff := cmp.Diff([]string{"0", "3", "1", "3", "2"}, bodies(h.settled("issue_comment"))); diff != "" {
		t.Fatal(diff)
	}
}

func TestDroppedDeliveriesAreListedAndCanBeRedelivered(t *testing.T) {
	h := newHouse(t)
	h.talk("before")
	h.Drop("issue_comment", 1)
	h.talk("lost", "after")
	if diff := cmp.Diff([]string{"before", "after"}, bodies(h.settled("issue_comment"))); diff != "" {
		t.Fatal(diff)
	}
	var lost *github.HookDelivery
	opts := &github.ListCursorOptions{PerPage: 2}
	pages := 0
	for {
		list, resp, err := h.app.Apps.ListHookDeliveries(h.ctx, opts)
		must(t, err)
		pages++
		for _, d := range list {
			if d.GetStatusCode() != 200 {
				lost = d
			}
		}
		if resp.Cursor == "" {
			break
		}
		opts.Cursor = resp.Cursor
	}
	if lost == nil || pages < 2 {
		t.Fatalf("lost %v in %d pages", lost, pages)
	}
	full, _, err := h.app.Apps.GetHookDelivery(h.ctx, lost.GetID())
	must(t, err)
	if !strings.Contains(string(full.Request.GetRawPayload()), `"body":"lost"`) || full.Request.Headers["X-GitHub-Delivery"] != lost.GetGUID() {
		t.Fatalf("%s", full.Request.GetRawPayload())
	}
	must(t, h.Redeliver(lost.GetGUID()))
	hooks := h.settled("issue_comment")
	if last := hooks[len(hooks)-1]; last.guid != lost.GetGUID() || last.at("comment", "body") != "lost" {
		t.Fatalf("%s %s", last.guid, last.raw)
	}
}

func TestFailedDeliveryIsRecordedAndNotRepeated(t *testing.T) {
	h := newHouse(t)
	must(t, h.WaitDelivered(h.ctx))
	h.hooks.status = http.StatusServiceUnavailable
	h.Ping()
	if n := len(h.settled("ping")); n != 1 {
		t.Fatalf("%d pings", n)
	}
	all := h.Deliveries()
	if last := all[len(all)-1]; last.StatusCode != 503 || !last.Answered || last.Event != "ping" {
		t.Fatalf("%+v", last)
	}
	h.SetWebhookURL("")
	h.Ping()
	must(t, h.WaitDelivered(h.ctx))
	all = h.Deliveries()
	if last := all[len(all)-1]; last.StatusCode != 0 || !last.Answered {
		t.Fatalf("%+v", last)
	}
}

func TestAnyPayloadCanBeSent(t *testing.T) {
	h := newHouse(t)
	guid := h.Send("package", []byte(`{"action":"published","package":{"id":"not a number"}}`))
	if got := h.settled("package"); len(got) != 1 || got[0].guid != guid {
		t.Fatalf("%v", got)
	}
}

func TestUninstalledAppGetsNoDeliveries(t *testing.T) {
	h := newHouse(t)
	must(t, h.RemoveRepo(repo))
	h.talk("quiet")
	if got := h.settled("issue_comment"); len(got) != 0 {
		t.Fatalf("%v", got)
	}
	must(t, h.Install(repo))
	h.talk("loud")
	if diff := cmp.Diff([]string{"loud"}, bodies(h.settled("issue_comment"))); diff != "" {
		t.Fatal(diff)
	}
}

func TestDeliveriesAreKeptForThreeDays(t *testing.T) {
	var c clock
	h := newHouse(t, c.option)
	h.talk("old")
	must(t, h.WaitDelivered(h.ctx))
	old := h.Deliveries()[0]
	c.advance(72*time.Hour + time.Second)
	h.talk("new")
	must(t, h.WaitDelivered(h.ctx))
	list, _, err := h.app.Apps.ListHookDeliveries(h.ctx, nil)
	must(t, err)
	if len(list) != 1 || list[0].GetEvent() != "issue_comment" {
		t.Errorf("%d deliveries are listed, want the new one", len(list))
	}
	_, _, err = h.app.Apps.GetHookDelivery(h.ctx, old.ID)
	wantStatus(t, err, http.StatusNotFound, "")
}

func TestLostEventIsNotListed(t *testing.T) {
	h := newHouse(t)
	h.talk("before")
	h.Lose("issue_comment", 1)
	h.talk("lost", "after")
	if diff := cmp.Diff([]string{"before", "after"}, bodies(h.settled("issue_comment"))); diff != "" {
		t.Error(diff)
	}
	for _, d := range h.Deliveries() {
		if strings.Contains(string(d.Payload), `"body":"lost"`) {
			t.Errorf("it is listed as %+v", d)
		}
	}
	before := len(h.Deliveries())
	h.Send("package", make([]byte, 25<<20+1))
	if after := len(h.Deliveries()); after != before {
		t.Errorf("a payload of more than 25 MiB was sent")
	}
}
