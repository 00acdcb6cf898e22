# The scripted agent of pawl demo. It prints the JSON stream of codex 0.169 and edits
# the files of its working directory. If nothing is left to do, it plays the incident:
# its stream reports that it posted $1 as a comment and reached its usage limit.
cat >/dev/null
echo '{"type":"thread.started","thread_id":"00000000-0000-7000-8000-000000000001"}'
echo '{"type":"turn.started"}'
if [ -s hello.txt ]; then
	at=$(date -u -d "@$(($(date +%s) + 7200))" '+%I:%M %p')
	limit="You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again at ${at#0}."
	cat <<END
{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"gh pr comment --body \"$1\"","aggregated_output":"","exit_code":0,"status":"completed"}}
{"type":"error","message":"$limit"}
{"type":"turn.failed","error":{"message":"$limit"}}
END
	exit 1
fi
echo 'Hello, world' >hello.txt || exit 1
cat <<END
{"type":"item.completed","item":{"id":"item_1","type":"file_change","changes":[{"path":"$PWD/hello.txt","kind":"add"}],"status":"completed"}}
{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"There is a greeting in hello.txt now; test.sh passes."}}
{"type":"turn.completed","usage":{"input_tokens":2400,"cached_input_tokens":400,"output_tokens":68}}
END
