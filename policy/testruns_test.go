package policy

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCallRunsTests(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"go test ./...":                                         true,
		"python tests/runtests.py auth_tests":                   true,
		"./runtests.py --parallel 1":                            true,
		"cd tests && ./runtests.sh":                             true,
		"bash -lc 'cd src && python -m pytest -x'":              true,
		`bash -lc "PYTHONPATH=. timeout 60 python runtests.py"`: true,
		"python -m unittest discover":                           true,
		"python manage.py test app":                             true,
		"python -m django test --settings=s":                    true,
		"npm run test:unit":                                     true,
		"npm --prefix web test":                                 true,
		"pnpm --filter @repo/web test":                          true,
		"npm t":                                                 true,
		"npx jest src":                                          true,
		"bundle exec rspec spec/a_spec.rb":                      true,
		"vendor/bin/phpunit":                                    true,
		"./gradlew :app:testDebugUnitTest":                      true,
		"mvn -q -pl core verify":                                true,
		"make -j4 check":                                        true,
		"mise run lint && mise run test:ci 2>&1":                true,
		"docker compose run --rm web pytest":                    true,
		"bazel test //pkg:all":                                  true,
		"swift test --filter Parser":                            true,
		"node experiments/test-version.mjs":                     true,
		"dune runtest":                                          true,
		"bin/test":                                              true,
		"sudo -E env A=1 tox":                                   true,
		`Bash {"command":"uv run pytest -q"}`:                   true,
		`bash {"command":["bash","-lc","prove -lr t"]}`:         true,
		`mcp__pawl__run_tests {}`:                               true,
		"pawl run_tests {}":                                     true,

		"node --test":                             true,
		"php artisan test":                        true,
		`sbt "testOnly a.B"`:                      true,
		`julia -e 'using Pkg; Pkg.test()'`:        true,
		"find . -name x | xargs pytest":           true,
		"python tests.py > out 2>&1":              true,
		"cat > a.go <<EOF\nx\nEOF\ngo test ./...": true,

		"":                                      false,
		"cat tests/runtests.py":                 false,
		"cd tests && ls":                        false,
		"grep -rn test src":                     false,
		"git commit -m 'fix; go test passes'":   false,
		"git add parser_test.go":                false,
		"test -f go.mod":                        false,
		"[ -d tests ]":                          false,
		"echo 'run the tests'":                  false,
		"pip install pytest":                    false,
		"npm install --save-dev jest@latest":    false,
		"go build ./test/...":                   false,
		"bazel build //pkg:a_test":              false,
		"python app.py --input tests/data.json": false,
		"docker run image:latest":               false,
		"node server.js test.json":              false,
		"gh pr checks 4":                        false,
		"npm run check":                         false,
		"gh pr edit 7 --body \"$(cat <<'EOF'\nDone; go test passes\nEOF\n)\"": false,
		"cat > notes <<EOF\ngo test ./...\nEOF\nls":                           false,
		"ls | xargs grep test":                                                false,
		"timeout 5 cat a_test.py":                                             false,
		"node app.js > test_output":                                           false,
		"cargo check":                                                         false,
		`Read {"file_path":"/r/parser_test.go"}`:                              false,
		`Edit {"file_path":"/r/tests/a.py"}`:                                  false,
		`Bash {"command":"sed -n 1,9p a_test.go | head"}`:                     false,
	} {
		if got := RunsTests(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestTestCommandsAreRecognised(t *testing.T) {
	for _, command := range strings.Split(strings.TrimSpace(`
go test ./...
python tests/runtests.py admin
./tests/runtests.py --parallel 1 admin
./run_tests.sh
bash run_tests.sh
sh ./scripts/test.sh
bin/test
script/test unit
./test
tox -e py311
nox -s tests
make check
make -C build check
make clean test
make unit-tests
npm test
npm t -- --watch=false && npm test
npm run test:unit
yarn test:e2e
pnpm -r test
pnpm --filter api run test
bun test
deno test -A
npx jest src/a.test.js
npx vitest run
npx playwright test
cargo test -p widget
cargo nextest run
uv run pytest -q
poetry run python -m pytest
pipenv run pytest
hatch run test
python -m unittest discover -s tests
python3 -m pytest tests/test_a.py::test_b
python setup.py test
python manage.py test app
python3.11 test_widget.py
node --test
node test/index.js
bazel test //...
bazelisk test //widget:all
docker compose run web pytest
docker compose -f ci.yml run --rm web npm test
docker-compose exec -T app bundle exec rspec
docker exec app php artisan test
kubectl exec app -- pytest
bundle exec rspec spec/models
bundle exec rake test
rake spec
bin/rails test test/models
vendor/bin/phpunit --filter Adds
./vendor/bin/pest
composer test
mvn -q test
./mvnw verify
./gradlew :app:testDebugUnitTest
gradle clean check
sbt testOnly
lein test
mix test test/a_test.exs:12
rebar3 eunit test
stack test
cabal test all
dotnet test --no-build
swift test --filter Widget
xcodebuild -scheme App test
ctest --output-on-failure
meson test -C build
ninja -C build test
zig build test
flutter test
dart test
prove -lr t
bats test/a.bats
busted spec
Rscript -e "devtools::test()"
R CMD check .
julia --project -e 'using Pkg; Pkg.test()'
elm-test
forge test -vvv
gotestsum ./...
cd web && CI=1 npm test 2>&1 | tail -20
timeout 60 ./run_tests.sh
time pytest
env FOO=1 pytest -x
bash -lc 'cd /src && pytest -q'
xvfb-run npm run e2e:test
turbo run test --filter=api
nx test api
just test
mise run test
`), "\n") {
		for _, wrote := range []string{command, shellCall(t, command)} {
			if !RunsTests(wrote) {
				t.Errorf("runs tests: %s", wrote)
			}
		}
	}
	for _, command := range strings.Split(strings.TrimSpace(`
grep -rn test src
rg "def test_" tests
cat test.py
cat tests/test_a.py | head -50
sed -n 1,80p tests/runtests.py
git checkout tests/
git add tests && git commit -m "make test pass; npm test"
git log -- test
ls tests
cd tests
mkdir -p tests/unit
touch test.py
rm -rf test
cp test.py tests/
chmod +x run_tests.sh
find . -name "*test*"
echo "npm test"
test -f package.json
[ -d tests ]
vim test.py
black tests
ruff check tests
python -m black tests/
mypy tests
cargo check
cargo build --tests
cargo clippy --tests
go vet ./...
go build ./...
npm install --save-dev jest
pip install pytest
python -m pip install pytest
uv add pytest
docker build -t app-test .
npm run build
npm run lint
make
make build
python script.py
python -c "print('contest')"
sqlite3 test.db
psql test
curl http://localhost/test
pytest --version
pytest --collect-only
which pytest
tail -f test.log
diff a.test b.test
for f in tests/*; do cat $f; done
node index.js
npm run latest
export NODE_ENV=test
kill 12
`), "\n") {
		for _, wrote := range []string{command, shellCall(t, command)} {
			if RunsTests(wrote) {
				t.Errorf("runs no tests: %s", wrote)
			}
		}
	}
	for wrote, want := range map[string]bool{
		`mcp__pawl__run_tests {}`:                          true,
		`Read {"file_path":"/src/tests/test_a.py"}`:        false,
		`Grep {"pattern":"pytest","path":"tests"}`:         false,
		`Edit {"file_path":"run_tests.sh"}`:                false,
		`shell {"command":["bash","-lc","npm test"]}`:      true,
		`shell {"command":["cat","tests/a.py"]}`:           false,
		`TodoWrite {"todos":[{"content":"run npm test"}]}`: false,
	} {
		if got := RunsTests(wrote); got != want {
			t.Errorf("%s: %t", wrote, got)
		}
	}
}

func shellCall(t *testing.T, command string) string {
	t.Helper()
	b, err := json.Marshal(map[string]string{"command": command, "description": "Run the command"})
	if err != nil {
		t.Fatal(err)
	}
	return "Bash " + string(b)
}
