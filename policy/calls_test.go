package policy

import "testing"

func TestWaitingCallIsRecognised(t *testing.T) {
	for text, want := range map[string]bool{
		`sleep 60; gh run view 77 --json status -q .status`:             true,
		`Bash {"command":"sleep 60 && gh pr checks 12"}`:                true,
		`bash -lc "sleep 30; curl -s localhost:8080/healthz"`:           true,
		`shell {"command":["bash","-lc","sleep 45; kubectl get pods"]}`: true,
		`sleep 5m`:                      true,
		`sleep 0.5m; tail -1 build.log`: true,
		`until gh run view 1 | grep -q completed; do sleep 5; done`:              true,
		`for i in $(seq 20); do curl -sf localhost && break; sleep 1; done`:      true,
		`while ! test -e done; do sleep 1; done`:                                 true,
		`timeout 300 gh run watch 77`:                                            true,
		`gh pr checks 12 --watch`:                                                true,
		`timeout 60 sleep 45`:                                                    true,
		`watch -n 5 -g kubectl get pods`:                                         true,
		`kubectl wait --for=condition=ready pod/a`:                               true,
		`docker compose up -d --wait`:                                            true,
		`bash ./wait-for-it.sh db:5432`:                                          true,
		`./scripts/wait_for_ci.sh`:                                               true,
		`python3 -c "import time; time.sleep(30); print(open('s').read())"`:      true,
		`powershell -Command "Start-Sleep -Seconds 30; Get-Job"`:                 true,
		`CI=1 sleep 20`:                                                          true,
		`mcp__playwright__browser_wait_for {"time":30}`:                          true,
		`ci wait_for_run {"run":77}`:                                             true,
		`write_stdin {"session_id":1,"chars":"","yield_time_ms":30000}`:          true,
		`TaskOutput {"task_id":"b1","block":true,"timeout":60000}`:               true,
		`sleep {"seconds":30}`:                                                   true,
		`gh run view 77 --json status`:                                           false,
		`sleep 5; gh run view 77`:                                                false,
		`sleep 2 && go test ./...`:                                               false,
		`grep -rn "sleep 60" .`:                                                  false,
		`grep -e 'sleep 60' main.go`:                                             false,
		`rg sleep`:                                                               false,
		`cat wait.go`:                                                            false,
		`go test ./wait`:                                                         false,
		`go test -run TestWait ./...`:                                            false,
		`npx jest --watch=false`:                                                 false,
		`npm test -- --watchAll=false`:                                           false,
		`echo "sleep 60"`:                                                        false,
		`git commit -m "sleep 60 before the watch"`:                              false,
		`Read {"file_path":"wait.go"}`:                                           false,
		`Grep {"pattern":"sleep 60"}`:                                            false,
		`Bash {"command":"go test ./...","timeout":600000,"description":"wait"}`: false,
		`mcp__playwright__browser_wait_for {"time":1}`:                           false,
		`exec_command {"cmd":"cargo check","yield_time_ms":30000}`:               false,
		``: false,
	} {
		if got := readCall(text).waits(); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}
