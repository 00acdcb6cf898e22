package gateway

import (
	"strings"
	"testing"
)

// TestHostedToolsAreTakenOutOfRequests has what the CLIs offer by themselves
// work on, and refuses what is for nothing else.
func TestHostedToolsAreTakenOutOfRequests(t *testing.T) {
	const responses, messages, chat, gemini = "/v1/responses", "/v1/messages", "/v1/chat/completions", "/v1beta/models/m:generateContent"
	for name, c := range map[string]struct {
		path, body string
		want       string // "" means refused
	}{
		// As Codex 0.169.0 offers them by default.
		"codex": {responses, `{"model":"m","tools":[{"type":"function","name":"exec_command"},{"type":"custom","name":"apply_patch"},{"type":"tool_search","execution":"client"},{"type":"web_search","external_web_access":true}],"tool_choice":"auto"}`,
			`{"model":"m","tool_choice":"auto","tools":[{"type":"function","name":"exec_command"},{"type":"custom","name":"apply_patch"},{"type":"tool_search","execution":"client"}]}`},
		"spelled otherwise":         {responses, `{"tools":[{"type":"function"},{"t\u0079pe":"\u0077eb_search"}]}`, `{"tools":[{"type":"function"}]}`},
		"added later":               {responses, `{"input":[{"type":"additional_tools","tools":[{"type":"function"},{"type":"mcp","server_url":"http://x"}]}]}`, `{"input":[{"tools":[{"type":"function"}],"type":"additional_tools"}]}`},
		"added in disguise":         {responses, `{"input":[{"type":"additional_tools","t\u006f\u006Fls":[{"type":"function"},{"type":"mcp"}]},{"role":"user"}]}`, `{"input":[{"tools":[{"type":"function"}],"type":"additional_tools"},{"role":"user"}]}`},
		"added twice":               {responses, `{"input":[{"tools":[{"type":"mcp"}]}],"input":[{"content":"tools"},{"tools":[{"type":"function"}]}]}`, ``},
		"added twice in an item":    {responses, `{"input":[{"tools":[{"type":"mcp"}],"tools":[{"type":"function"}]},{"role":"user"}]}`, `{"input":[{"role":"user"}]}`},
		"code":                      {responses, `{"tools":[{"type":"code_interpreter"}]}`, ``},
		"a shell elsewhere":         {responses, `{"tools":[{"type":"shell","environment":{"type":"container_auto"}}]}`, ``},
		"a shell here":              {responses, `{"tools":[{"type":"shell","environment":{"type":"local"}}]}`, `{"tools":[{"type":"shell","environment":{"type":"local"}}]}`},
		"forced":                    {responses, `{"tools":[{"type":"function"},{"type":"image_generation"}],"tool_choice":{"type":"image_generation"}}`, ``},
		"a stored prompt":           {responses, `{"prompt":{"id":"p"}}`, ``},
		"claude's own search":       {messages, `{"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":8}]}`, ``},
		"claude":                    {messages, `{"tools":[{"name":"Bash"},{"type":"bash_20250124","name":"bash"},{"type":"web_fetch_20250910"}]}`, `{"tools":[{"name":"Bash"},{"type":"bash_20250124","name":"bash"}]}`},
		"MCP servers":               {messages, `{"mcp_servers":[{"url":"http://x"}]}`, ``},
		"no MCP servers":            {messages, `{"mcp_servers":[]}`, `{"mcp_servers":[]}`},
		"chat":                      {chat, `{"tools":[{"type":"function"},{"type":"openrouter:web_search"}]}`, `{"tools":[{"type":"function"}]}`},
		"chat with a search":        {chat, `{"web_search_options":{}}`, ``},
		"chat online":               {chat, `{"model":"a/b:online"}`, ``},
		"gemini's own search":       {gemini, `{"tools":[{"googleSearch":{}}]}`, ``},
		"gemini":                    {gemini, `{"tools":[{"functionDeclarations":[],"google_search":{}},{"urlContext":{}}]}`, `{"tools":[{"functionDeclarations":[]}]}`},
		"an unknown type":           {responses, `{"tools":[{"type":"browser_preview"}]}`, ``},
		"a type of no text":         {responses, `{"tools":[{"type":["web_search"]}]}`, ``},
		"within another":            {responses, `{"tools":[{"type":"namespace","tools":[{"type":"function"},{"type":"mcp"}]}]}`, ``},
		"a namespace":               {responses, `{"tools":[{"type":"namespace","tools":[{"type":"function"}]}]}`, `{"tools":[{"type":"namespace","tools":[{"type":"function"}]}]}`},
		"no list":                   {responses, `{"tools":{"type":"web_search"}}`, ``},
		"added as no list":          {responses, `{"input":[{"tools":{"type":"web_search"}}]}`, `{"input":[]}`},
		"an unknown place":          {responses, `{"tools":[{"type":"shell","environment":{}}]}`, ``},
		"an earlier answer":         {responses, `{"previous_response_id":"resp_1"}`, ``},
		"a conversation":            {responses, `{"conversation":{"id":"conv_1"}}`, ``},
		"a cache":                   {gemini, `{"cachedContent":"cachedContents/1"}`, ``},
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
		"other models":              {chat, `{"models":["a","b"]}`, ``},
		"claude's advisor":          {messages, `{"tools":[{"type":"advisor_20260301"}]}`, ``},
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

// TestTheOperatorMayAllowWhatStandsElsewhere, for agents that need it.
func TestTheOperatorMayAllowWhatStandsElsewhere(t *testing.T) {
	p := newProvider(t, plain(200, `{}`))
	s := open(t, OpenAI, p.URL, func(g *Grant) { g.Provider.AllowRemote = true })
	if resp, body := s.post(t, "/v1/responses", `{"model":"m","previous_response_id":"r","input":[{"type":"item_reference","id":"i"}]}`); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// TestOnlyTheModelsOfTheBackendAreAsked has aliases mean their models, as the CLIs write them.
func TestOnlyTheModelsOfTheBackendAreAsked(t *testing.T) {
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
