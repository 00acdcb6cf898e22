package agent

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCodexIsStartedWithoutItsTraps(t *testing.T) {
	r := Request{
		Prompt: "Fix it.", Dir: `/work/a "b"\c`, Home: "/home/agent", Model: "gpt-5", Effort: "high",
		Env: map[string]string{"PATH": "/usr/bin", "OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"},
	}
	got, err := codexAdapter().Command(r)
	if err != nil {
		t.Fatal(err)
	}
	want := Command{
		Argv: []string{"codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "--ignore-rules", "--model=gpt-5", "-c", `model_reasoning_effort="high"`, "-"},
		Env: []string{"CODEX_HOME=/home/agent/.codex", "HOME=/home/agent", "LANG=C.UTF-8", "OPENAI_API_KEY=sk-x",
			"OPENAI_BASE_URL=http://127.0.0.1:9/v1", "PATH=/usr/bin", "TERM=dumb", "TZ=UTC"},
		Stdin: "Fix it.",
		Files: map[string]string{".codex/config.toml": `check_for_update_on_startup = false
approval_policy = "never"
cli_auth_credentials_store = "file"
model_provider = "pawl"

[analytics]
enabled = false

[feedback]
enabled = false

[history]
persistence = "none"

[shell_environment_policy]
exclude = ["OPENAI_API_KEY", "CODEX_API_KEY", "PAWL_ENDPOINT_TOKEN"]

[projects."/work/a \"b\"\\c"]
trust_level = "untrusted"

[model_providers.pawl]
name = "pawl"
base_url = "http://127.0.0.1:9/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 2
stream_max_retries = 3
`},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if strings.Contains(strings.Join(got.Argv, " ")+got.Files[".codex/config.toml"], "sk-x") {
		t.Error("the key stands in the arguments or a file")
	}
}

func TestCodexContinuesASession(t *testing.T) {
	got, err := codexAdapter().Command(Request{Home: "/h", Session: "01a1fd2a-efb1-7451-8d0f-9bf2a7204a41", Argv: []string{"/opt/codex"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/opt/codex", "exec", "resume", "01a1fd2a-efb1-7451-8d0f-9bf2a7204a41"}; !slices.Equal(got.Argv[:4], want) {
		t.Errorf("%q, want %q first", got.Argv, want)
	}
	if strings.Contains(got.Files[".codex/config.toml"], "model_provider") {
		t.Error("a provider of its own without a key or address of one")
	}
	for _, bad := range []Request{{Session: "--last"}, {Session: "../../x"}, {Effort: `high" -c x="y`}} {
		if c, err := codexAdapter().Command(bad); err == nil {
			t.Errorf("%+v gave %q", bad, c.Argv)
		}
	}
}

func TestACommandGetsItsAttempt(t *testing.T) {
	a, err := For("command", "codex")
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.Command(Request{
		Prompt: "Fix it.", Home: "/h", Argv: []string{"/bin/agent", "-x"}, Attempt: 3, Thread: "o/r#7", Rung: "retry", Effort: "high",
		Env: map[string]string{"MY_KEY": "k", "PAWL_THREAD": "forged"},
	})
	want := Command{Argv: []string{"/bin/agent", "-x"}, Stdin: "Fix it.",
		Env: []string{"HOME=/h", "MY_KEY=k", "PAWL_ATTEMPT=3", "PAWL_EFFORT=high", "PAWL_RUNG=retry", "PAWL_THREAD=o/r#7"}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Error(d, err)
	}
	if _, err := a.Command(Request{}); err == nil {
		t.Error("a command without a program was accepted")
	}
}

func TestUnknownKindsAndStreamsAreRefusedWithAHint(t *testing.T) {
	for _, c := range [][2]string{{"", ""}, {"nope", ""}, {"command", "nope"}} {
		if _, err := For(c[0], c[1]); err == nil || !strings.Contains(err.Error(), "use ") {
			t.Errorf("For(%q, %q): error %v", c[0], c[1], err)
		}
	}
}

func TestTheScannerReadsWhatEncodingJSONReads(t *testing.T) {
	for _, s := range []string{
		`{"a":"x","b":{"c":[1,"]}",{}]},"d":-1.5e3,"e":null,"f":"\"\\"}`,
		`{ "a" : "\u00e9\ud83d\ude00\n\/" , "b" : [ ] }`,
		`{"a":""}`, `{}`,
	} {
		var want map[string]json.RawMessage
		if err := json.Unmarshal([]byte(s), &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]json.RawMessage{}
		members([]byte(s), func(key, value []byte) { got[string(key)] = value })
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", s, d)
		}
	}
}

func TestACutLineIsReadAsFarAsItGoes(t *testing.T) {
	line := strings.Repeat(`\n…\"`, 10)
	whole := `{"type":"item.completed","item":{"id":"item_9","type":"command_execution","command":"ls","aggregated_output":"` + line
	for cut := len(whole) - len(line); cut < len(whole); cut++ {
		var events []Event
		codexLine([]byte(whole[:cut]), func(e Event) { events = append(events, e) })
		if len(events) != 1 || events[0].ID != "item_9" || events[0].Wrote != "ls" || !events[0].Done {
			t.Fatalf("cut at %d: %+v", cut, events)
		}
	}
}

func FuzzCodexLine(f *testing.F) {
	f.Add([]byte(`{"type":"item.completed","item":{"id":"1","type":"file_change","changes":[{"path":"/a","kind":"add"}]}}`))
	f.Add([]byte(`{"type":"turn.failed","error":{"message":"You’ve hit your usage limit."}}`))
	f.Add([]byte(`{"type":"error","message":"\ud83d\u12"`))
	f.Add([]byte(`{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"text":"x"}]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		check := func(e Event) {
			if e.Kind == 0 || strings.ToValidUTF8(e.Text, "") != e.Text {
				t.Errorf("%q gave %+v", line, e)
			}
		}
		codexLine(line, check)
		codexSessionLine(line, check)
	})
}

func FuzzStringsAgreeWithEncodingJSON(f *testing.F) {
	f.Add(`a"b\c` + "\n\u2019😀")
	f.Fuzz(func(t *testing.T, s string) {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want string
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		if got := stringOf(b); got != want {
			t.Errorf("%s reads as %q, want %q", b, got, want)
		}
		// A value that follows is not swallowed.
		doc := []byte(`{"a":` + string(b) + `,"b":1}`)
		if got := member(doc, "b"); string(got) != "1" {
			t.Errorf("%s: b is %q", doc, got)
		}
	})
}
