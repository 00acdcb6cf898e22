package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakeprovider"
)

// draft writes what a scripted model does, one call of a tool a step, and keeps what
// the files of the checkout hold meanwhile, so that every edit finds its place.
type draft struct {
	t     *testing.T
	files map[string]string
	// read are the files whose content the agent knows: some CLIs edit no others.
	read  map[string]bool
	steps []fakeprovider.Step
}

func (d *draft) write(path, text string) {
	d.look(path)
	d.files[path], d.read[path] = text, true
	d.steps = append(d.steps, fakeprovider.Step{Write: path, New: text})
}

// edit puts lines in the place of others, which the file holds once.
func (d *draft) edit(path, before, after string) {
	d.t.Helper()
	d.look(path)
	text := "\n" + d.files[path]
	if strings.Count(text, "\n"+before+"\n") != 1 || before == after {
		d.t.Fatalf("%q stands %d times in %s:\n%s", before, strings.Count(text, "\n"+before+"\n"), path, text)
	}
	d.files[path] = strings.Replace(text, "\n"+before+"\n", "\n"+after+"\n", 1)[1:]
	d.steps = append(d.steps, fakeprovider.Step{Edit: path, Old: before, New: after})
}

// above puts lines above a line, and below below it.
func (d *draft) above(path, line, more string) { d.t.Helper(); d.edit(path, line, more+"\n"+line) }
func (d *draft) below(path, line, more string) { d.t.Helper(); d.edit(path, line, line+"\n"+more) }

func (d *draft) look(path string) {
	if d.files[path] != "" && !d.read[path] {
		d.read[path] = true
		d.steps = append(d.steps, fakeprovider.Step{Read: path})
	}
}

func (d *draft) run(command string) {
	d.steps = append(d.steps, fakeprovider.Step{Run: command})
}

// shell is a command that changes a file.
func (d *draft) shell(path, command string, change func(string) string) {
	d.t.Helper()
	after := change(d.files[path])
	if after == d.files[path] {
		d.t.Fatalf("%s changes nothing", command)
	}
	d.files[path], d.read[path] = after, false
	d.run(command)
}

func (d *draft) test() {
	d.run("node --test --test-reporter=tap test/*.test.js | grep -E '^(not ok|# (pass|fail))'")
}

// function is a function of the shop that the sessions work on, and a check of it.
type function struct{ name, args, body, check string }

// old is the function as the shop's older files have it, modern as it is written today.
func (f function) old() string {
	return fmt.Sprintf("function %s(%s) {\n%s\n}", f.name, f.args, strings.ReplaceAll(f.body, "const ", "var "))
}

func (f function) modern() string {
	return fmt.Sprintf("export function %s(%s) {\n%s\n}", f.name, f.args, f.body)
}

// heads are the first lines of both.
func (f function) heads() (old, modern string) {
	return fmt.Sprintf("function %s(%s) {", f.name, f.args), fmt.Sprintf("const %s = (%s) => {", f.name, f.args)
}

func (f function) tested() string {
	return fmt.Sprintf("test(%q, () => {\n  %s\n});", f.name, f.check)
}

var functions = []function{
	{"netPrice", "gross, rate", "  const net = gross / (1 + rate);\n  return Math.round(net * 100) / 100;", "assert.equal(shop.netPrice(119, 0.19), 100);"},
	{"grossPrice", "net, rate", "  const gross = net * (1 + rate);\n  return Math.round(gross * 100) / 100;", "assert.equal(shop.grossPrice(100, 0.07), 107);"},
	{"discounted", "price, percent", "  if (percent < 0 || percent > 100) throw new RangeError('percent');\n  return price - (price * percent) / 100;", "assert.equal(shop.discounted(80, 25), 60);"},
	{"cheapest", "items", "  const sorted = [...items].sort((a, b) => a.price - b.price);\n  return sorted[0];", "assert.equal(shop.cheapest([{ price: 3 }, { price: 2 }]).price, 2);"},
	{"total", "lines", "  let sum = 0;\n  for (const line of lines) sum += line.price * line.count;\n  return sum;", "assert.equal(shop.total([{ price: 3, count: 2 }]), 6);"},
	{"slug", "title", "  const lower = title.trim().toLowerCase();\n  return lower.replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');", "assert.equal(shop.slug(' Red Hat! '), 'red-hat');"},
	{"initials", "name", "  const words = name.split(/\\s+/).filter(Boolean);\n  return words.map((word) => word[0].toUpperCase()).join('');", "assert.equal(shop.initials('ada lovelace'), 'AL');"},
	{"shorten", "text, most", "  if (text.length <= most) return text;\n  return text.slice(0, most - 1) + '…';", "assert.equal(shop.shorten('abcdef', 4), 'abc…');"},
	{"groupBy", "items, key", "  const groups = new Map();\n  for (const item of items) {\n    groups.set(item[key], [...(groups.get(item[key]) ?? []), item]);\n  }\n  return groups;", "assert.equal(shop.groupBy([{ a: 1 }, { a: 1 }], 'a').get(1).length, 2);"},
	{"inStock", "stock, sku, wanted", "  const there = stock[sku] ?? 0;\n  return there >= wanted;", "assert.equal(shop.inStock({ x: 2 }, 'x', 3), false);"},
	{"reserve", "stock, sku, count", "  if ((stock[sku] ?? 0) < count) throw new Error('sold out: ' + sku);\n  return { ...stock, [sku]: stock[sku] - count };", "assert.equal(shop.reserve({ x: 2 }, 'x', 2).x, 0);"},
	{"restock", "stock, sku, count", "  const before = stock[sku] ?? 0;\n  return { ...stock, [sku]: before + count };", "assert.equal(shop.restock({}, 'x', 2).x, 2);"},
	{"shipping", "weight, zone", "  const base = zone === 'home' ? 4.9 : 12.5;\n  return weight > 5 ? base + (weight - 5) * 0.8 : base;", "assert.equal(shop.shipping(1, 'home'), 4.9);"},
	{"weekday", "date", "  const names = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];\n  return names[date.getUTCDay()];", "assert.equal(shop.weekday(new Date(0)), 'Thu');"},
	{"addDays", "date, days", "  const next = new Date(date);\n  next.setUTCDate(next.getUTCDate() + days);\n  return next;", "assert.equal(shop.addDays(new Date(0), 1).getTime(), 86400000);"},
	{"parseAmount", "text", "  const clean = text.replace(/[^0-9.,-]/g, '').replace(',', '.');\n  return Number.parseFloat(clean);", "assert.equal(shop.parseAmount('4,50 EUR'), 4.5);"},
	{"formatAmount", "value", "  const [whole, cents] = value.toFixed(2).split('.');\n  return whole.replace(/\\B(?=(\\d{3})+$)/g, ',') + '.' + cents;", "assert.equal(shop.formatAmount(1234.5), '1,234.50');"},
	{"isVoucher", "code", "  const pattern = /^[A-Z]{3}-\\d{4}$/;\n  return pattern.test(code);", "assert.equal(shop.isVoucher('ABC-1234'), true);"},
	{"unique", "list", "  const seen = new Set(list);\n  return [...seen];", "assert.deepEqual(shop.unique([1, 1, 2]), [1, 2]);"},
	{"average", "numbers", "  if (numbers.length === 0) return 0;\n  return numbers.reduce((sum, n) => sum + n, 0) / numbers.length;", "assert.equal(shop.average([1, 3]), 2);"},
	{"median", "numbers", "  const sorted = [...numbers].sort((a, b) => a - b);\n  const half = Math.floor(sorted.length / 2);\n  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;", "assert.equal(shop.median([3, 1, 2]), 2);"},
	{"chunk", "list, size", "  const parts = [];\n  for (let i = 0; i < list.length; i += size) parts.push(list.slice(i, i + size));\n  return parts;", "assert.equal(shop.chunk([1, 2, 3], 2).length, 2);"},
}

const testHead = "import assert from 'node:assert/strict';\nimport { test } from 'node:test';\nimport * as shop from '../src/index.js';\n\n// more tests\n"

// tidy is the shop's formatter, which a session runs: no tabs, and the other quotation marks.
const tidy = `import { readFileSync, writeFileSync } from 'node:fs';

for (const file of process.argv.slice(2)) {
  const text = readFileSync(file, 'utf8');
  const neat = text.replaceAll('\t', '  ').replaceAll('"', "'");
  if (neat !== text) writeFileSync(file, neat);
}
`

func tidied(text string) string { return strings.NewReplacer("\t", "  ", `"`, "'").Replace(text) }

// shopFiles is the repository that the sessions begin with.
func shopFiles() map[string]string {
	var legacy, exports strings.Builder
	for _, f := range functions {
		legacy.WriteString(f.old() + "\n\n")
		exports.WriteString("  " + f.name + ",\n")
	}
	calls := func(of ...string) string {
		var b strings.Builder
		for i, name := range of {
			fmt.Fprintf(&b, "export function use%d(order) {\n  return legacy.%s(order.first, order.second, order.third);\n}\n\n", i, name)
		}
		return "import * as legacy from './legacy.js';\n\n" + b.String()
	}
	return map[string]string{
		"package.json":       "{\n  \"name\": \"shop\",\n  \"type\": \"module\"\n}\n",
		"README.md":          "# Shop\n\nFunctions:\n\n<!-- more functions -->\n",
		"tools/tidy.mjs":     tidy,
		"src/index.js":       "export const currency = 'EUR';\n// more exports\n",
		"src/price.js":       "// Prices.\n// more code\n",
		"src/legacy.js":      legacy.String() + "export {\n" + exports.String() + "};\n",
		"src/checkout.js":    calls("netPrice", "grossPrice", "discounted", "total", "netPrice", "grossPrice", "discounted", "total"),
		"src/invoice.js":     calls("netPrice", "total", "formatAmount", "netPrice", "grossPrice", "total", "formatAmount", "discounted"),
		"src/catalogue.js":   calls("slug", "cheapest", "discounted", "netPrice", "slug", "grossPrice", "total", "discounted"),
		"test/price.test.js": testHead,
	}
}

// script is a session that the real CLIs play: what the model does, and whether it goes in circles. Unseen
// says that a CLI's output does not show it.
type script struct {
	name    string
	circles bool
	unseen  bool
	play    func(d *draft)
}

func (s script) draft(t *testing.T) *draft {
	t.Helper()
	d := &draft{t: t, files: shopFiles(), read: map[string]bool{}}
	s.play(d)
	return d
}

// sessionScripts are sessions of at least 40 edits, 8 of them of one file: from there on
// edits can be a loop at all.
func sessionScripts() []script { return append(healthyScripts(), circlingScripts()...) }

func healthyScripts() []script {
	return []script{
		{name: "a feature over several files", play: feature},
		{name: "a refactoring of one file", play: refactoring},
		{name: "debug prints in and out", play: debugging},
		{name: "a rename over the files", play: renaming},
		{name: "a formatter after each edit", play: formatting},
		{name: "tests edited and run", play: testFirst},
		{name: "corrections taken back", play: correcting},
		{name: "files written whole", play: writing},
	}
}

// feature adds a function at a time: its code, its export, its test and a line of the README.
func feature(d *draft) {
	for i, f := range functions[:12] {
		d.above("src/price.js", "// more code", f.modern()+"\n")
		d.above("src/index.js", "// more exports", fmt.Sprintf("export { %s } from './price.js';", f.name))
		d.above("test/price.test.js", "// more tests", f.tested()+"\n")
		d.above("README.md", "<!-- more functions -->", fmt.Sprintf("- `%s(%s)`", f.name, f.args))
		if i%3 == 2 {
			d.test()
		}
	}
}

// refactoring modernises a file function by function, in two passes.
func refactoring(d *draft) {
	for i, f := range functions {
		old, modern := f.heads()
		d.edit("src/legacy.js", f.old(), strings.Replace(f.old(), "var ", "const ", 1)+" // strict")
		d.edit("src/legacy.js", old, modern)
		if i%5 == 4 {
			d.run("node --check src/legacy.js && git diff --stat")
		}
	}
}

// debugging looks for what is wrong with prints, and mends it where they show it.
func debugging(d *draft) {
	for i, f := range functions[:20] {
		head, _ := f.heads()
		if i%2 == 1 {
			d.below("src/legacy.js", head, fmt.Sprintf("  console.log('%s', arguments);", f.name))
			d.run("node -e \"import('./src/legacy.js').then((m) => m." + f.name + "('1', '2', '3'))\" 2>&1 | head -n 3")
			d.edit("src/legacy.js", fmt.Sprintf("%s\n  console.log('%s', arguments);", head, f.name), head)
		}
		d.below("src/legacy.js", head, fmt.Sprintf("  if (arguments.length < %d) throw new TypeError('%s: an argument is missing');", 1+strings.Count(f.args, ","), f.name))
	}
	for _, f := range functions[:6] {
		d.above("test/price.test.js", "// more tests", fmt.Sprintf("test('%s wants its arguments', () => {\n  assert.throws(() => shop.%s(), TypeError);\n});\n", f.name, f.name))
	}
	d.test()
}

// renaming gives functions other names, in the file that has them and where they are called.
func renaming(d *draft) {
	files := []string{"src/checkout.js", "src/invoice.js", "src/catalogue.js"}
	for _, f := range functions[:5] {
		to := "shop" + strings.ToUpper(f.name[:1]) + f.name[1:]
		d.edit("src/legacy.js", fmt.Sprintf("function %s(%s) {", f.name, f.args), fmt.Sprintf("function %s(%s) {", to, f.args))
		d.edit("src/legacy.js", fmt.Sprintf("  %s,", f.name), fmt.Sprintf("  %s,", to))
		d.run("grep -rn " + f.name + " src | head -n 20")
		for _, file := range files {
			for i := range 8 {
				call := fmt.Sprintf("export function use%d(order) {\n  return legacy.%%s(order.first, order.second, order.third);", i)
				if before := fmt.Sprintf(call, f.name); strings.Contains(d.files[file], before) {
					d.edit(file, before, fmt.Sprintf(call, to))
				}
			}
		}
	}
	for _, name := range []string{"slug", "formatAmount", "median", "chunk", "unique", "average", "weekday", "addDays", "reserve", "restock", "initials", "shorten"} {
		to := name + "Of"
		d.shell("src/legacy.js", fmt.Sprintf("sed -i 's/\\b%s\\b/%s/' src/legacy.js", name, to), func(text string) string { return strings.ReplaceAll(text, name, to) })
	}
	d.run("node --check src/legacy.js")
}

// formatting writes as the formatter does not want it, which runs after each edit.
func formatting(d *draft) {
	format := func() { d.shell("src/price.js", "node tools/tidy.mjs src/price.js", tidied) }
	for _, f := range functions {
		d.above("src/price.js", "// more code", strings.NewReplacer("  ", "\t", "'", `"`).Replace(f.modern())+"\n")
		format()
		d.above("src/price.js", fmt.Sprintf("export function %s(%s) {", f.name, f.args), fmt.Sprintf("/**\n\t* %s of a shop, from %s.\n\t*/", f.name, f.args))
		format()
	}
	d.run("git diff --stat")
}

// testFirst writes a test that fails, then the code, then the same for a case more.
func testFirst(d *draft) {
	for i, f := range functions[:11] {
		d.above("test/price.test.js", "// more tests", f.tested()+"\n")
		d.test()
		d.above("src/price.js", "// more code", fmt.Sprintf("export function %s(%s) {\n  throw new Error('to do');\n}\n", f.name, f.args))
		d.above("src/index.js", "// more exports", fmt.Sprintf("export { %s } from './price.js';", f.name))
		d.edit("src/price.js", fmt.Sprintf("export function %s(%s) {\n  throw new Error('to do');\n}", f.name, f.args), f.modern())
		d.test()
		if i%3 == 0 {
			d.edit("test/price.test.js", f.tested(), strings.Replace(f.tested(), "  assert", "  assert.equal(typeof shop."+f.name+", 'function');\n  assert", 1))
		}
	}
}

// correcting takes one edit in five back, and does that work in another way.
func correcting(d *draft) {
	for i, f := range functions {
		head, modern := f.heads()
		if i%4 == 3 {
			d.edit("src/legacy.js", head, modern)
			d.run("node --check src/legacy.js 2>&1 | head -n 5")
			d.edit("src/legacy.js", modern, head)
		}
		d.below("src/legacy.js", head, fmt.Sprintf("  /* %s takes %s. */", f.name, f.args))
		if i%3 == 0 {
			d.above("test/price.test.js", "// more tests", f.tested()+"\n")
		}
	}
	for _, f := range functions[:5] {
		d.above("README.md", "<!-- more functions -->", fmt.Sprintf("- `%s(%s)`", f.name, f.args))
	}
	d.test()
}

// writing writes four files whole, again and again, as they grow.
func writing(d *draft) {
	for n := range 11 {
		var code, exports, tests, list strings.Builder
		for _, f := range functions[:n+1] {
			code.WriteString("\n" + f.modern() + "\n")
			fmt.Fprintf(&exports, "export { %s } from './amounts.js';\n", f.name)
			tests.WriteString("\n" + f.tested() + "\n")
			fmt.Fprintf(&list, "- `%s(%s)`\n", f.name, f.args)
		}
		d.write("src/amounts.js", "// Amounts.\n"+code.String())
		d.write("src/index.js", "export const currency = 'EUR';\n"+exports.String())
		d.write("test/amounts.test.js", strings.TrimSuffix(testHead, "// more tests\n")+tests.String())
		d.write("docs/amounts.md", "# Amounts\n\n"+list.String())
		if n%3 == 2 {
			d.test()
		}
	}
}

func circlingScripts() []script {
	return []script{
		{name: "A to B to A", circles: true, play: func(d *draft) {
			between := []string{"  const base = zone === 'home' ? 4.9 : 12.5;", "  const base = { home: 4.9 }[zone] ?? 12.5;"}
			d.edit("src/legacy.js", "  var base = zone === 'home' ? 4.9 : 12.5;", between[0])
			for i := range 40 {
				d.edit("src/legacy.js", between[i%2], between[(i+1)%2])
				d.run(fmt.Sprintf("node --check src/legacy.js && echo look %d", i))
			}
		}},
		{name: "a cycle of fifteen states", circles: true, play: func(d *draft) {
			state := func(i int) string { return fmt.Sprintf("export const retries = %d;", 3+i%15*7%15) }
			d.above("src/price.js", "// more code", state(0))
			for i := range 41 {
				d.edit("src/price.js", state(i), state(i+1))
				if i%2 == 1 {
					d.run(fmt.Sprintf("node -p 'try %d'", i))
				}
			}
		}},
		{name: "the same edit with a moving counter", circles: true, play: func(d *draft) {
			state := func(i int) string {
				return fmt.Sprintf("// Attempt %d: the rounding should hold now (run-%x).\nexport const rounding = %d;", i, 1+i*2654435761%9973, i)
			}
			d.above("src/price.js", "// more code", state(0))
			for i := range 41 {
				d.edit("src/price.js", state(i), state(i+1))
				if i%3 == 2 {
					d.test()
				}
			}
		}},
		{name: "whole files to and fro", circles: true, play: func(d *draft) {
			for i := range 42 {
				var b strings.Builder
				fmt.Fprintf(&b, "// Version %d of the amounts.\n", i+1)
				for _, f := range functions[:6] {
					text := f.modern()
					if i/2%2 == 1 {
						text = strings.ReplaceAll(strings.ReplaceAll(text, "export function", "export const"), ") {", ") => {")
					}
					b.WriteString("\n" + text + "\n")
				}
				d.write([]string{"src/amounts.js", "src/totals.js"}[i%2], b.String())
				if i%4 == 3 {
					d.run(fmt.Sprintf("git status --short && echo round %d", i/4))
				}
			}
		}},
		{name: "sed in the shell", circles: true, unseen: true, play: func(d *draft) {
			rates := []string{"0.19", "0.07"}
			d.above("src/price.js", "// more code", "export const rate = 0.19;")
			for i := range 41 {
				from, to := rates[i%2], rates[(i+1)%2]
				d.shell("src/price.js", fmt.Sprintf("sed -i 's/rate = %s;/rate = %s;/' src/price.js", from, to), func(text string) string { return strings.ReplaceAll(text, from, to) })
				if i%4 == 3 {
					d.run(fmt.Sprintf("grep -n rate src/price.js; echo look %d", i))
				}
			}
		}},
		{name: "two fixes that undo each other", circles: true, play: func(d *draft) {
			sign := []string{"export const sign = (value) => (value < 0 ? '-' : '+');", "export const sign = (value) => (value < 0 ? '-' : '');"}
			used := []string{"export const signed = (value) => sign(value) + Math.abs(value);", "export const signed = (value) => (value > 0 ? '+' : '') + sign(value) + Math.abs(value);"}
			d.above("src/price.js", "// more code", sign[0])
			d.above("src/index.js", "// more exports", "import { sign } from './price.js';\n"+used[0])
			d.above("test/price.test.js", "// more tests", "test('signed', () => {\n  assert.equal(shop.signed(2), '++2');\n});\n")
			for i := range 21 {
				d.edit("src/price.js", sign[i%2], sign[(i+1)%2])
				d.test()
				d.edit("src/index.js", used[i%2], used[(i+1)%2])
				d.test()
			}
		}},
	}
}
