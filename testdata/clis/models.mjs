// Writes config/models.json: what the models of three vendors cost and how long they may think, as models.dev says it
// in the copy that the installed OpenCode carries. Run it after another version was installed:
//
//	node testdata/clis/models.mjs > config/models.json
import { readFileSync } from 'node:fs'

const folder = new URL('./node_modules/opencode-linux-x64/', import.meta.url)
const version = JSON.parse(readFileSync(new URL('package.json', folder))).version
const program = readFileSync(new URL('bin/opencode', folder), 'latin1')

// literal is the object that begins at the first brace from start on.
function literal(start) {
  const from = program.indexOf('{', start)
  for (let at = from, depth = 0, quote = ''; ; at++) {
    const c = program[at]
    if (quote) {
      if (c === '\\') at++
      else if (c === quote) quote = ''
    } else if ('"\'`'.includes(c)) quote = c
    else if (c === '{') depth++
    else if (c === '}' && --depth === 0) return program.slice(from, at + 1)
  }
}

// oldest keeps models out that no agent uses any more, some of which cost fifty times what others do.
const oldest = '2025-04-01'
const all = []
let asOf = ''
for (const [name, protocol] of [['openai', 'openai'], ['anthropic', 'anthropic'], ['google', 'gemini']]) {
  const start = program.indexOf(`,${name}:{id:"${name}",env:`)
  if (start < 0) throw new Error(`the catalogue of ${name} is not where it was in OpenCode 1.18.33`)
  const vendor = (0, eval)(`(${literal(start)})`)
  for (const m of Object.values(vendor.models).sort((a, b) => (a.id < b.id ? -1 : 1))) {
    if (!m.tool_call || !m.cost || m.release_date < oldest) continue
    asOf = [asOf, m.release_date, m.last_updated].sort().at(-1)
    const entry = { protocol, model: m.id, input: m.cost.input, cached_input: m.cost.cache_read ?? m.cost.input, output: m.cost.output }
    if (m.cost.cache_write) entry.cache_write = m.cost.cache_write
    const tier = m.cost.tiers?.find((t) => t.tier?.type === 'context')
    if (tier) Object.assign(entry, { long_over: tier.tier.size, long_input: tier.input, long_cached_input: tier.cache_read ?? tier.input, long_output: tier.output })
    for (const o of m.reasoning_options ?? []) {
      if (o.type === 'effort') entry.efforts = o.values
      if (o.type === 'budget_tokens') entry.least_budget = o.min ?? 0
    }
    all.push(entry)
  }
}
const lines = all.map((e) => '  ' + JSON.stringify(e))
console.log(`{\n"source": "models.dev, as OpenCode ${version} carries it",\n"as_of": "${asOf}",\n"models": [\n${lines.join(',\n')}\n]}`)
