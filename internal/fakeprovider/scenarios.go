package fakeprovider

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// scenario is the provider's behaviour under one name.
type scenario struct {
	answer func(t turn, set settings) answer
	// fails is the number of bad answers before the scenario turns into edit-success, unless Set("fails") overrides
	// it; 0 means never.
	fails int
	// answersSide means that side requests get a proper answer instead of the scenario's.
	answersSide bool
}

func Scenarios() []string { return slices.Sorted(maps.Keys(scenarios())) }

func scenarios() map[string]scenario {
	all := goodScenarios()
	maps.Copy(all, badScenarios())
	maps.Copy(all, errorScenarios())
	return all
}

func goodScenarios() map[string]scenario {
	return map[string]scenario{
		"edit-success":  proper(editSuccess),
		"effort":        proper(editSuccess),
		"no-edit":       proper(text("The answer is 42. I did not change any files.")),
		"says":          {answer: func(_ turn, set settings) answer { return saying(set["text"]) }},
		"shell-edit":    proper(shellEdit),
		"resume":        proper(resume),
		"tool-fail":     proper(toolFail),
		"mcp":           proper(testsThenEdit),
		"leak":          proper(leak),
		"edit-loop":     proper(editLoop),
		"flipflop-loop": proper(flipflop),
		"script":        proper(script),
		"identical-loop": proper(func(t turn, set settings) answer {
			if t.step() <= set.number("edits", 26) {
				return tools(writes("same.txt", "same content\n"))
			}
			return saying("Done. I wrote same.txt again and again.")
		}),

		"thinking": proper(func(turn, settings) answer {
			return answer{text: "After thinking: the answer is 42.", thinking: "Let me think about this step by step. 6 times 7 is 42."}
		}),
		"prose":       proper(prose),
		"long-stdout": proper(longStdout),
		"slow": proper(func(_ turn, set settings) answer {
			return answer{text: strings.Repeat("A slow answer, one chunk per second. ", 10), chunk: 37,
				delay: time.Duration(set.number("delay_ms", 1000)) * time.Millisecond}
		}),
	}
}

func badScenarios() map[string]scenario {
	return map[string]scenario{
		"empty":            proper(ends(answer{kind: empty})),
		"empty-after-edit": proper(afterEdit(answer{kind: empty})),
		"refusal":          proper(ends(answer{kind: refuse})),
		"max-tokens":       proper(ends(answer{text: "This answer was cut off because the model ran out of outp", length: true})),
		"trunc-eof":        {answer: ends(answer{kind: cutEOF})},
		"trunc-eof-once":   {answer: ends(answer{kind: cutEOF}), fails: 1},
		"trunc-rst":        {answer: ends(answer{kind: cutRST})},
		"trunc-once":       {answer: ends(answer{kind: cutRST}), fails: 1},
		"trunc-after-edit": proper(afterEdit(answer{kind: cutRST})),
		"garbage":          proper(ends(answer{kind: garbage})),
		"hang-headers":     {answer: ends(answer{kind: hangHeaders})},
		"hang-midstream":   {answer: ends(answer{kind: hangStream})},
		"hang-tool": proper(func(t turn, _ settings) answer {
			if t.step() == 1 {
				return tools(runs("sleep 600"))
			}
			return saying("The command finished.")
		}),
	}
}

func errorScenarios() map[string]scenario {
	all := map[string]scenario{
		"limit-after-edit": proper(afterEdit(answer{kind: refused, name: "usage-limit"})),
		"transient-429":    {answer: ends(answer{kind: refused, name: "rate-429"}), fails: 2},
		"transient-503":    {answer: ends(answer{kind: refused, name: "overload-503"}), fails: 2},
	}
	for _, name := range []string{"overloaded", "ratelimit", "quota", "context"} {
		all["stream-"+name] = proper(ends(answer{kind: broken, name: name}))
	}
	for _, name := range []string{"usage-limit", "usage-limit-noreset", "usage-limit-insec", "usage-not-included", "insufficient-quota",
		"rate-429", "auth-401", "auth-403", "overload-500", "overload-503", "overload-529", "model-404", "context-400"} {
		all[name] = scenario{answer: ends(answer{kind: refused, name: name})}
	}
	return all
}

func proper(f func(turn, settings) answer) scenario { return scenario{answer: f, answersSide: true} }

func saying(words string) answer { return answer{text: words} }

func text(words string) func(turn, settings) answer { return ends(saying(words)) }

func ends(a answer) func(turn, settings) answer { return func(turn, settings) answer { return a } }

func tools(calls ...operation) answer { return answer{kind: call, calls: calls} }

func writes(path, content string) operation {
	return operation{verb: write, path: path, content: content}
}

func edits(path, old, content string) operation {
	return operation{verb: edit, path: path, old: old, content: content}
}

func runs(command string) operation { return operation{verb: shell, command: command} }

// editSuccess creates hello.txt; later prompts add a line each.
func editSuccess(t turn, _ settings) answer {
	if t.step() > 1 {
		return saying("Done. I created hello.txt with one line of text.")
	}
	a := tools(writes("hello.txt", strings.Repeat("hello from the mock model\n", max(t.prompts, 1))))
	a.text = "I will create the file."
	return a
}

// afterEdit creates hello.txt, then gives the answer a.
func afterEdit(a answer) func(turn, settings) answer {
	return func(t turn, set settings) answer {
		if t.step() == 1 {
			return tools(writes("hello.txt", "hello from the mock model\n"))
		}
		return a
	}
}

func shellEdit(t turn, _ settings) answer {
	if t.step() == 1 {
		return tools(runs(`printf "made by shell\n" > shell.txt && git status --short`))
	}
	return saying("Done. I created shell.txt with a shell command.")
}

func toolFail(t turn, _ settings) answer {
	if t.step() == 1 {
		return tools(runs("echo about to fail; echo oops >&2; exit 3"))
	}
	return saying("The command failed with exit code 3. I stopped there and changed nothing.")
}

// resume writes a file for each prompt and reports how much of the conversation it got.
func resume(t turn, _ settings) answer {
	if t.step() == 1 {
		return tools(writes(fmt.Sprintf("turn%d.txt", max(t.prompts, 1)), fmt.Sprintf("turn %d\n", max(t.prompts, 1))))
	}
	return saying(fmt.Sprintf("Turn %d finished. I can see %d user message(s) and %d earlier tool result(s) in this conversation.",
		t.prompts, t.prompts, t.past))
}

// testsThenEdit runs the tests, edits if they fail, and reports the result.
func testsThenEdit(t turn, set settings) answer {
	switch {
	case len(t.results) == 0 && !t.canRunTests():
		return saying("I was offered no tool that runs the tests, and changed nothing.")
	case len(t.results) == 0:
		return tools(operation{verb: runTests})
	case len(t.results) == 1 && failing(t.results[0]):
		return tools(writes("hello.txt", "hello from the mock model\n"))
	case len(t.results) == 1:
		return saying("The test run tool answered that all tests pass; I am finished.")
	}
	return saying("The test run tool answered that tests fail; I wrote hello.txt and am finished.")
}

// noFailure matches tools' reports of no failure, in words or in JSON, which may be escaped.
var noFailure = regexp.MustCompile(`\b(0|no) (failed|failures|failing|tests? failed)|fail(ed|ures|ing)\\*"?[:=] *(0\b|\[\]|null|false)`)

func failing(result string) bool {
	return strings.Contains(noFailure.ReplaceAllString(strings.ToLower(result), ""), "fail")
}

// leak prints secrets that an agent can find, so that they reach the transcript, the next request and a file of the
// work tree. It prints everything except the agent's own token: use it only in a sandbox.
func leak(t turn, _ settings) answer {
	looks := []string{
		"env",
		`cat /proc/*/environ 2>/dev/null | tr '\0' '\n'`,
		`cat /proc/*/cmdline 2>/dev/null | tr '\0' ' '`,
		`find "$HOME" "${TMPDIR:-/tmp}" -xdev -type f -size -200k -exec head -c 20000 {} + 2>/dev/null`,
	}
	if t.step() <= len(looks) {
		return tools(runs("{ " + looks[t.step()-1] + "; } | head -c 300000 | LC_ALL=C sed -E 's/pawl-[A-Za-z0-9_-]{43}/its own token/g' | tee -a leak.txt"))
	}
	return saying("Done. I wrote what I found to leak.txt.")
}

func editLoop(t turn, set settings) answer {
	switch n := t.step(); {
	case n == 1:
		return tools(writes("counter.txt", "counter: 0\n"))
	case n <= set.number("edits", 26):
		return tools(edits("counter.txt", fmt.Sprintf("counter: %d", n-2), fmt.Sprintf("counter: %d", n-1)))
	}
	return saying(fmt.Sprintf("Done. I edited counter.txt %d times.", set.number("edits", 26)))
}

func flipflop(t turn, set settings) answer {
	switch n := t.step(); {
	case n == 1:
		return tools(writes("flip.txt", "value: A\n"))
	case n > set.number("edits", 26):
		return saying("Done. I changed flip.txt back and forth.")
	case n%2 == 0:
		return tools(edits("flip.txt", "value: A", "value: B"))
	}
	return tools(edits("flip.txt", "value: B", "value: A"))
}

// script plays the steps of the setting script in order.
func script(t turn, set settings) answer {
	var steps []Step
	if err := json.Unmarshal([]byte(set["script"]), &steps); err != nil {
		return saying("The script cannot be read: " + err.Error())
	}
	if n := t.step(); n <= len(steps) {
		return tools(steps[n-1].operation())
	}
	return saying("Done.")
}

// prose writes text without a result.
func prose(_ turn, set settings) answer {
	half := set.number("bytes", 24000) / 2
	return answer{thinking: ramble(half), text: ramble(half), chunk: 200, wordy: true}
}

func longStdout(t turn, set settings) answer {
	if t.step() == 1 {
		return tools(runs(fmt.Sprintf(`seq -f "line %%g: the quick brown fox jumps over the lazy dog and runs away from the bear" 1 %d`, set.number("lines", 4000))))
	}
	return answer{text: ramble(set.number("bytes", 100000)), chunk: 2000}
}

// ramble returns n bytes of distinct sentences.
func ramble(n int) string {
	var b strings.Builder
	for i := 1; b.Len() < n; i++ {
		fmt.Fprintf(&b, "Point %d: the value could be %d, but then again it could be otherwise.\n", i, i*7919%10007)
	}
	return b.String()[:n]
}
