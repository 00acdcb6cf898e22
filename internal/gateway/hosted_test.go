package gateway

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// Requests with the CLIs' default tools continue without hosted ones. Requests with only hosted tools are refused.
func TestHostedToolsAreRemoved(t *testing.T) {
	const responses, messages, chat, gemini = "/v1/responses", "/v1/messages", "/v1/chat/completions", "/v1beta/models/m:generateContent"
	for name, c := range map[string]struct {
		path, body string
		want       string // "" means refused
	}{
		// As Codex 0.169.0 offers them by default.
		"codex": {responses, `{"model":"m","tools":[{"type":"function","name":"exec_command"},{"type":"custom","name":"apply_patch"},{"type":"tool_search","execution":"client"},{"type":"web_search","external_web_access":true}],"tool_choice":"auto"}`,
			`{"model":"m","tool_choice":"auto","tools":[{"type":"function","name":"exec_command"},{"type":"custom","name":"apply_patch"},{"type":"tool_search","execution":"client"}]}`},
		"another spelling":          {responses, `{"tools":[{"type":"function"},{"t\u0079pe":"\u0077eb_search"}]}`, `{"tools":[{"type":"function"}]}`},
		"added later":               {responses, `{"input":[{"type":"additional_tools","tools":[{"type":"function"},{"type":"mcp","server_url":"http://x"}]}]}`, `{"input":[{"tools":[{"type":"function"}],"type":"additional_tools"}]}`},
		"added in disguise":         {responses, `{"input":[{"type":"additional_tools","t\u006f\u006Fls":[{"type":"function"},{"type":"mcp"}]},{"role":"user"}]}`, `{"input":[{"tools":[{"type":"function"}],"type":"additional_tools"},{"role":"user"}]}`},
		"added twice":               {responses, `{"input":[{"tools":[{"type":"mcp"}]}],"input":[{"content":"tools"},{"tools":[{"type":"function"}]}]}`, ``},
		"added twice in an item":    {responses, `{"input":[{"tools":[{"type":"mcp"}],"tools":[{"type":"function"}]},{"role":"user"}]}`, `{"input":[{"role":"user"}]}`},
		"forced":                    {responses, `{"tools":[{"type":"function"},{"type":"image_generation"}],"tool_choice":{"type":"image_generation"}}`, ``},
		"claude":                    {messages, `{"tools":[{"name":"Bash"},{"type":"bash_20250124","name":"bash"},{"type":"web_fetch_20250910"}]}`, `{"tools":[{"name":"Bash"},{"type":"bash_20250124","name":"bash"}]}`},
		"gemini":                    {gemini, `{"tools":[{"functionDeclarations":[],"google_search":{}},{"urlContext":{}}]}`, `{"tools":[{"functionDeclarations":[]}]}`},
		"gemini, forced":            {gemini, `{"tools":[{"functionDeclarations":[{"name":"own"}]},{"googleSearch":{}}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},"tool_choice":{"type":"function"}}`, `{"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},"tool_choice":{"type":"function"},"tools":[{"functionDeclarations":[{"name":"own"}]}]}`},
		"a type that is not text":   {responses, `{"tools":[{"type":["web_search"]}]}`, ``},
		"inside another tool":       {responses, `{"tools":[{"type":"namespace","tools":[{"type":"function"},{"type":"mcp"}]}]}`, ``},
		"not a list":                {responses, `{"tools":{"type":"web_search"}}`, ``},
		"added as a non-list":       {responses, `{"input":[{"tools":{"type":"web_search"}}]}`, `{"input":[]}`},
		"an unknown place":          {responses, `{"tools":[{"type":"shell","environment":{}}]}`, ``},
		"an earlier answer":         {responses, `{"previous_response_id":"resp_1"}`, ``},
		"a conversation":            {responses, `{"conversation":{"id":"conv_1"}}`, ``},
		"an address of a picture":   {responses, `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://x/a.png"}]}]}`, ``},
		"a picture":                 {responses, `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}]}`, `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}]}`},
		"a file of the provider's":  {responses, `{"input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]}`, ``},
		"an item of the provider's": {responses, `{"input":[{"type":"item_reference","id":"msg_1"}]}`, ``},
		"a picture by a tool":       {responses, `{"input":[{"type":"function_call_output","output":[{"type":"input_image","image_url":"http://x"}]}]}`, ``},
		"an address in chat":        {chat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x"}}]}]}`, ``},
		"a file in chat":            {chat, `{"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"data:x"}}]}]}`, `{"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"data:x"}}]}]}`},
		"a file's id in chat":       {chat, `{"messages":[{"role":"user","content":[{"type":"file","file":{"fi\u006ce_id":"f"}}]}]}`, ``},
		"an address for claude":     {messages, `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}]}`, ``},
		"within a result":           {messages, `{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}]}]}`, ``},
		"a document":                {messages, `{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","data":"AA=="}}]}]}`, `{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","data":"AA=="}}]}]}`},
		"a tool's address":          {messages, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"url":"https://x","file_id":"f","type":"url"}}]}]}`, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"url":"https://x","file_id":"f","type":"url"}}]}]}`},
		"a word of the text":        {messages, `{"messages":[{"role":"user","content":"\"file_id\": https://x"}]}`, `{"messages":[{"role":"user","content":"\"file_id\": https://x"}]}`},
		"gemini's file":             {gemini, `{"contents":[{"parts":[{"fileData":{"fileUri":"gs://x"}}]}]}`, ``},
		"gemini's file, by a tool":  {gemini, `{"contents":[{"parts":[{"functionResponse":{"parts":[{"file_data":{"file_uri":"gs://x"}}]}}]}]}`, ``},
		"a film":                    {chat, `{"messages":[{"role":"user","content":[{"type":"video_url","video_url":{"url":"https://x"}}]}]}`, ``},
		"a film of pictures":        {chat, `{"messages":[{"role":"user","content":[{"type":"video","video":["data:x","https:\/\/x"]}]}]}`, ``},
		"a sound's address":         {chat, `{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":" oss://x"}}]}]}`, ``},
		"an earlier sound":          {chat, `{"messages":[{"role":"assistant","audio":{"id":"audio_1"}}]}`, ``},
		"a file's address":          {chat, `{"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"https://x"}}]}]}`, ``},
		"an undocumented entry":     {chat, `{"messages":[{"role":"user","content":[{"type":"scene","scene":{"imageUrl":"//x/a"}}]}]}`, ``},
		"an address as the text":    {responses, `{"input":"https://x"}`, `{"input":"https://x"}`},
		"an address as a result":    {chat, `{"messages":[{"role":"tool","content":"https://x"}]}`, `{"messages":[{"role":"tool","content":"https://x"}]}`},
		"a schema in a tool":        {responses, `{"input":[{"type":"additional_tools","tools":[{"type":"function","parameters":{"$schema":"http://x"}}]}]}`, `{"input":[{"type":"additional_tools","tools":[{"type":"function","parameters":{"$schema":"http://x"}}]}]}`},
		"a tier":                    {responses, `{"service_tier":"priority"}`, ``},
		"the usual tier":            {responses, `{"service_tier":"auto"}`, `{"service_tier":"auto"}`},
		"the fast mode":             {messages, `{"speed":"fast"}`, ``},
		"a long name":               {messages, `{"model":"` + strings.Repeat("m", 257) + `"}`, ``},
	} {
		protocol := map[string]string{responses: OpenAI, chat: OpenAI, messages: Anthropic, gemini: Gemini}[c.path]
		p := newProvider(t, plain(200, `{}`))
		s := open(t, protocol, p.URL, nil)
		resp, body := s.post(t, c.path, c.body)
		got := ""
		for _, r := range p.requests() {
			got = r.body
		}
		if got != c.want || resp.StatusCode != 200 && c.want != "" || resp.StatusCode != 400 && c.want == "" {
			t.Errorf("%s: %d %s; the provider sees %s", name, resp.StatusCode, body, got)
		}
	}
}

// TestEveryKnownHostedToolIsRemoved lists the hosted tools of the providers' references of 2026-08, each alone and
// together with a tool of the CLI. Tools that the CLIs run themselves pass unchanged.
func TestEveryKnownHostedToolIsRemoved(t *testing.T) {
	sent := func(protocol, path, body string) (int, string) {
		t.Helper()
		p := newProvider(t, plain(200, `{}`))
		resp, _ := open(t, protocol, p.URL, nil).post(t, path, body)
		if all := p.requests(); len(all) > 0 {
			return resp.StatusCode, all[0].body
		}
		return resp.StatusCode, ""
	}
	types := func(names string) (all []string) {
		for name := range strings.FieldsSeq(names) {
			all = append(all, `{"type":"`+name+`","name":"x"}`)
		}
		return all
	}
	fieldsNamed := func(names string) (all []string) {
		for name := range strings.FieldsSeq(names) {
			all = append(all, `{"`+name+`":{}}`)
		}
		return all
	}
	const own = `{"type":"function","name":"own"}`
	for _, c := range []struct {
		protocol, path, own string
		hosted, local       []string
		refused             string // fields and values for which a request is refused
	}{
		{OpenAI, "/v1/responses", own,
			append(types(`web_search web_search_2025_08_26 web_search_preview web_search_preview_2025_03_11 file_search code_interpreter computer computer_use_preview
				image_generation mcp programmatic_tool_calling x_search collections_search code_execution web_fetch memory openrouter:web_search openrouter:web_fetch`),
				`{"type":"shell","environment":{"type":"container_auto"}}`, `{"type":"shell","environment":{"type":"container_reference","container_id":"c"}}`,
				`{"type":"namespace","name":"n","tools":[{"type":"mcp"}]}`),
			append(types("function custom local_shell shell apply_patch tool_search"), `{"type":"shell","environment":{"type":"local"}}`, `{"type":"namespace","name":"n","tools":[`+own+`]}`),
			`"prompt":{"id":"p"} "plugins":[{"id":"web"}] "preset":"p" "background":true "search_parameters":{"mode":"on"} "model":"a/b:online" "model":"@preset/p"`},
		{OpenAI, "/v1/chat/completions", own,
			types(`web_search web_search_preview file_search code_interpreter mcp image_generation retrieval builtin_function browser_search openrouter:web_search openrouter:image_generation`),
			types("function custom"),
			`"web_search_options":{} "plugins":[{"id":"web"}] "preset":"p" "models":["a"] "search_parameters":{"mode":"auto"} "enable_search":true "enable_code_interpreter":true
			 "data_sources":[{"type":"azure_search"}] "compound_custom":{"tools":{}} "model":"a/b:Online" "model":"a/b:online:free" "model":"a/b@preset/p"`},
		{Anthropic, "/v1/messages", `{"name":"own"}`,
			types(`web_search_20250305 web_search_20260209 web_search_20260318 web_fetch_20250910 web_fetch_20260209 web_fetch_20260309 web_fetch_20260318 code_execution_20250522
				code_execution_20250825 code_execution_20260120 code_execution_20260521 computer_20241022 computer_20250124 computer_20251124 computer_toolset_20260801
				browser_toolset_20260801 advisor_20260301 mcp_toolset web_search_21000101`),
			append(types(`custom bash_20241022 bash_20250124 text_editor_20241022 text_editor_20250124 text_editor_20250429 text_editor_20250728 memory_20250818
				tool_search_tool_regex_20251119 tool_search_tool_bm25_20251119`), `{"name":"web_search"}`),
			`"mcp_servers":[{"type":"url","url":"https://x","name":"x"}] "container":{"skills":[{"type":"anthropic","skill_id":"pptx"}]} "container":"container_1"`},
		{Gemini, "/v1beta/models/m:generateContent", `{"functionDeclarations":[{"name":"own"}]}`,
			fieldsNamed(`googleSearch google_search googleSearchRetrieval google_search_retrieval enterpriseWebSearch retrieval urlContext url_context codeExecution
				code_execution fileSearch file_search googleMaps google_maps computerUse mcpServers mcp_servers parallelAiSearch`),
			[]string{`{"function_declarations":[{"name":"googleSearch"}]}`},
			`"cachedContent":"cachedContents/1"`},
	} {
		for _, tool := range c.hosted {
			if status, got := sent(c.protocol, c.path, `{"tools":[`+c.own+`,`+tool+`]}`); status != 200 || got != `{"tools":[`+c.own+`]}` {
				t.Errorf("%s with %s next to its own: %d, the provider sees %s", c.path, tool, status, got)
			}
			if status, got := sent(c.protocol, c.path, `{"tools":[`+tool+`]}`); status != 400 || got != "" {
				t.Errorf("%s with %s alone: %d, the provider sees %s", c.path, tool, status, got)
			}
		}
		for _, tool := range c.local {
			whole := `{"tools":[` + tool + `,` + c.own + `]}`
			if status, got := sent(c.protocol, c.path, whole); status != 200 || got != whole {
				t.Errorf("%s with %s: %d, the provider sees %s", c.path, tool, status, got)
			}
		}
		for field := range strings.FieldsSeq(c.refused) {
			if status, got := sent(c.protocol, c.path, `{`+field+`,"tools":[`+c.own+`]}`); status != 400 || got != "" {
				t.Errorf("%s with %s: %d, the provider sees %s", c.path, field, status, got)
			}
		}
	}
	// Fields that forbid tools pass. So does a tool choice that forces no tool.
	for _, whole := range []string{`{"enable_search":false,"plugins":[],"web_search_options":null}`, `{"provider":{"order":["a"]},"route":"fallback"}`} {
		if status, got := sent(OpenAI, "/v1/chat/completions", whole); status != 200 || got != whole {
			t.Errorf("%s: %d, the provider sees %s", whole, status, got)
		}
	}
	if status, got := sent(Anthropic, "/v1/messages", `{"tools":[{"name":"own"},{"type":"web_search_20260318"}],"tool_choice":{"type":"auto"}}`); status != 200 || got != `{"tool_choice":{"type":"auto"},"tools":[{"name":"own"}]}` {
		t.Errorf("a choice by the model: %d, the provider sees %s", status, got)
	}
}

// protocols lists the four kinds of calls: a local tool, the conversation's field, and an entry with a field in it.
var protocols = []struct{ name, path, own, conversation, entry string }{
	{OpenAI, "/v1/responses", `{"type":"function","name":"own"}`, "input", `{"role":"user","content":[%s]}`},
	{OpenAI, "/v1/chat/completions", `{"type":"function","function":{"name":"own"}}`, "messages", `{"role":"user","content":[%s]}`},
	{Anthropic, "/v1/messages", `{"name":"own"}`, "messages", `{"role":"user","content":[%s]}`},
	{Gemini, "/v1beta/models/m:generateContent", `{"functionDeclarations":[{"name":"own"}]}`, "contents", `{"role":"user","parts":[%s]}`},
}

// A newer CLI may need unknown fields. Its request passes byte for byte.
func TestUnknownFieldsPassUnchanged(t *testing.T) {
	for _, c := range protocols {
		p := newProvider(t, plain(200, `{}`))
		s := open(t, c.name, p.URL, nil)
		for _, field := range strings.Split(`"reasoning_style": "terse"
			"tomorrow":{"depth":3,"nested":[{"kind":"x"},[1,null]]}
			"answer_budget":12.50
			"parallel_tool_results":true
			"stop_token_ids":[1,2]
			"x":{"end_user_id":"u","function_call_id":"c"}
			"session_id":"s-1"
			"metadata":{"user_id":"u","thread_id":"t","home":"https://example.org"}
			"client_metadata":{"x-codex-window-id":"w","turn_id":"t"}
			"context_management":{"edits":[{"type":"clear_tool_uses_20250919","exclude_tools":["web_search"]}]}
			"response_format":{"type":"json_schema","json_schema":{"schema":{"$schema":"https://json-schema.org/x","properties":{"file_id":{"type":"string"},"search":{"type":"string"}}}}}
			"tool_choice":{"type":"allowed_tools","tools":[OWN]}
			"background":false
			"disable_search":true
			"mcp_servers":[]
			"enable_search":null
			"note":"see https, or //x"`, "\n") {
			field = strings.TrimSpace(strings.ReplaceAll(field, "OWN", c.own))
			entry := fmt.Sprintf(c.entry, `{"type":"text","text":"https://example.org","call_id":"c","tool_use_id":"t","id":"i","calls":[{"id":"i","type":"function","function":{}},{"type":"function","name":"x","id":"i"}],"tomorrow":{"kind":"x"}}`)
			want := `{"` + c.conversation + `":[` + entry + `], ` + field + `,"tools":[` + c.own + `]}`
			resp, body := s.post(t, c.path, want)
			if all := p.requests(); resp.StatusCode != 200 || all[len(all)-1].body != want {
				t.Errorf("%s with %s: %d %s", c.path, field, resp.StatusCode, body)
			}
		}
	}
}

// Every tool that is not known to be local counts as hosted.
func TestUnknownToolsAreRemoved(t *testing.T) {
	for _, c := range protocols {
		for tool := range strings.SplitSeq(`{"type":"teleport_20280101","name":"x"}
			{"type":"vendor:deep_thought"}
			{"type":"FUNCTION","name":"x"}
			{"Type":"teleport"}
			{"type":"function","type":"teleport"}
			{"type":"function","Tools":[{"type":"teleport"}]}
			{"type":"function","server_url":"https://x"}
			{"type":"custom","vault_id":"v-1"}
			{"type":"custom","environment":"cloud"}
			{"type":"custom","environment":{"type":"local","type":"cloud"}}
			{"quantumSearch":{}}
			"teleport"
			["teleport"]
			7`, "\n") {
			tool = strings.TrimSpace(tool)
			if c.name != Gemini && tool == `{"quantumSearch":{}}` {
				continue // tools of other protocols have types
			}
			p := newProvider(t, plain(200, `{}`))
			s := open(t, c.name, p.URL, nil)
			s.post(t, c.path, `{"tools":[`+c.own+`,`+tool+`]}`)
			s.post(t, c.path, `{"tools":[`+tool+`]}`)
			if all := p.requests(); len(all) != 1 || all[0].body != `{"tools":[`+c.own+`]}` {
				t.Errorf("%s with %s: the provider sees %v", c.path, tool, all)
			}
			s.post(t, c.path, `{"tools":[`+c.own+`],"tomorrow":[{"x":{"tools":[`+tool+`]}}]}`)
			if all := p.requests(); tool != `"teleport"` && len(all) != 1 {
				t.Errorf("%s with %s within an unknown field: the provider sees %s", c.path, tool, all[1].body)
			}
		}
	}
}

// The unknown fields request something that is denied.
func TestUnknownFieldsAreRefusedByRule(t *testing.T) {
	const (
		hosted = "tools that the provider runs itself"
		later  = "could not be counted"
		price  = "it has another price"
		stored = "send the "
		twice  = "write it "
		other  = "is not allowed here: use m"
	)
	for _, c := range protocols {
		asks := map[string]string{
			`"deep_search":{}`:                                         hosted,
			`"DEEP-SEARCH":"on"`:                                       hosted,
			`"deepſearch":true`:                                        hosted,
			`"tomorrow":{"liveBrowsing":true}`:                         hosted,
			`"mcpEndpoints":[{"name":"x"}]`:                            hosted,
			`"generationConfig":{"plugins":["x"]}`:                     hosted,
			`"extensions":[{"type":"web_search"}]`:                     hosted,
			`"tool_choice":{"type":"code_interpreter_2"}`:              hosted,
			`"server_tools":["web_search"]`:                            hosted,
			`"x":{"toolset":[{"x":1,"x":2}]}`:                          hosted,
			`"blocks":[{"tools":[{"type":"mcp"}]}]`:                    hosted,
			`"exclude":{"y":{"live_search":true}}`:                     hosted,
			`"x":[[{"y":{"Tools":[7]}}]]`:                              hosted,
			`"model_2":"m","helper_model":"a/b:online"`:                hosted,
			`"run_in_background":true`:                                 later,
			`"BACKGROUND":true`:                                        later,
			`"x":{"async_mode":"full"}`:                                later,
			`"deferred":true`:                                          later,
			`"serviceTier":"turbo"`:                                    price,
			`"extra_body":{"service_tier":"priority"}`:                 price,
			`"inference_geo":"us"`:                                     price,
			`"approval_request_id":"a"`:                                stored,
			`"warehouse_id":"w"`:                                       stored,
			`"vault_id":"v-1"`:                                         stored,
			`"x":{"vaultId":"v-1"}`:                                    stored,
			`"x":{"vault_ids":["v-1"]}`:                                stored,
			`"VAULT_ID":7`:                                             stored,
			`"voice":{"id":"v-1"}`:                                     stored,
			`"x":{"id":"v-1","type":"saved_thing"}`:                    stored,
			`"previous_turn":{"at":1}`:                                 stored,
			`"Previous_Response":"r"`:                                  stored,
			`"extra_body":{"google":{"cached_content":"c/1"}}`:         stored,
			`"brief_url":"//x"`:                                        stored,
			`"x":{"briefURIs":["x"]}`:                                  stored,
			`"brief":"gs://x"`:                                         stored,
			`"x":[{"brief":" https://x"}]`:                             stored,
			`"spare_models":["m"]`:                                     stored,
			`"helper_model":"n"`:                                       other,
			`"x":{"Model":"n"}`:                                        other,
			`"MODEL":"m"`:                                              twice,
			`"Tools":[]`:                                               twice,
			`"tool\u017f":[{"type":"mcp"}]`:                            twice,
			`"x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40): "levels in x",
		}
		for asked, why := range asks {
			refusedFor(t, c.name, c.path, `{"model":"m",`+asked+`}`, asked, why)
		}
		for part, why := range map[string]string{
			`{"type":"x","vault_id":"v"}`:                           stored,
			`{"type":"x","x":{"vaultIds":["v"]}}`:                   stored,
			`{"type":"x","SceneURL":"//x"}`:                         stored,
			`{"type":"x","scene":"x://y"}`:                          stored,
			`{"type":"x","y":1,"type":"item_reference"}`:            stored,
			`{"type":"url","x":1}`:                                  stored,
			`{"type":"x","picture":{ "id" : "p" }}`:                 stored,
			`{"picture":{"id":"p","type":"x"}}`:                     stored,
			`{"picture":{"type":"x","id":"p"}}`:                     stored,
			`{"type":"x","audio":{"id":"a"}}`:                       stored,
			`{"type":"x","x":[{"v\u0061ult_id":"v"}]}`:              stored,
			`{"type":"x","bundle":{"tools":[{"type":"mcp"},"",7]}}`: hosted,
		} {
			refusedFor(t, c.name, c.path, `{"model":"m","`+c.conversation+`":[`+fmt.Sprintf(c.entry, part)+`]}`, part, why)
		}
		refusedFor(t, c.name, c.path, `{"model":"m","`+c.conversation+`":[{"id":"msg_1"}]}`, "an item by its id", stored)
	}
}

func refusedFor(t *testing.T, protocol, path, body, what, why string) {
	t.Helper()
	p := newProvider(t, plain(200, `{}`))
	s := open(t, protocol, p.URL, func(g *Grant) { g.Model = "m" })
	resp, answer := s.post(t, path, body)
	if resp.StatusCode != 400 || !strings.Contains(answer, why) || len(p.requests()) > 0 {
		t.Errorf("%s with %s: %d %s", path, what, resp.StatusCode, answer)
	}
}

func TestOperatorMayAllowReferences(t *testing.T) {
	p := newProvider(t, plain(200, `{}`))
	s := open(t, OpenAI, p.URL, func(g *Grant) { g.Provider.AllowRemote = true })
	if resp, body := s.post(t, "/v1/responses", `{"model":"m","previous_response_id":"r","input":[{"type":"item_reference","id":"i"}]}`); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// Aliases match models as the CLIs write them.
func TestOnlyTheBackendsModelsAreAllowed(t *testing.T) {
	for model, c := range map[string]struct{ yes, no string }{
		"claude-opus-4-8": {"claude-opus-4-8 claude-opus-4-8-20260528 claude-haiku-4-5-20251001", "claude-opus-5 claude-sonnet-5 gpt-5"},
		"opus[1m]":        {"claude-opus-4-8 claude-haiku-4-5 gpt-5-nano", "claude-sonnet-5 claude-fable-5"},
		"":                {"claude-opus-4-8 anything", ""},
	} {
		for want, names := range map[int]string{200: c.yes, 400: c.no} {
			for _, name := range strings.Fields(names) {
				p := newProvider(t, plain(200, okMessage))
				s := open(t, Anthropic, p.URL, func(g *Grant) { g.Model, g.SideModels = model, []string{"haiku", "gpt-5-nano"} })
				resp, body := s.post(t, "/v1/messages", `{"model":"`+name+`"}`)
				if resp.StatusCode != want || want == 400 && (!strings.Contains(body, "is not allowed here: use "+model) || len(p.requests()) > 0) {
					t.Errorf("%s where %q is given: %d %s", name, model, resp.StatusCode, body)
				}
			}
		}
	}
}

// The gateway may read sixteen calls of an attempt concurrently.
func TestEmptyElementsTakeNoMemory(t *testing.T) {
	zeros := "[" + strings.Repeat("0,", 1<<20) + "0]"
	for name, body := range map[string]string{
		"tools":       `{"tools":` + zeros + `}`,
		"within one":  `{"tools":[{"type":"namespace","tools":` + zeros + `}]}`,
		"added":       `{"input":[{"tools":` + zeros + `}]}`,
		"of its host": `{"plugins":` + zeros + `}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readRequest(route{kind: responses, protocol: OpenAI, model: "m"}, body, Grant{})
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 48<<20 {
			t.Errorf("%s: %d MB for %d MB, %v", name, used>>20, len(body)>>20, err)
		}
	}
}
