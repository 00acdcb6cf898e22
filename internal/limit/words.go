package limit

import (
	"regexp"
	"strings"
)

// Families of words. Providers word refusals in hundreds of ways, but there are few kinds. Something that the account
// needs is used up or missing, too many requests came at once, or the provider is busy. A sentence's words decide. The
// Chinese words are from Alibaba, Moonshot, Volcengine and Zhipu; proxies and resellers answer in their users'
// language.
const (
	// money: things that an account has bought or been granted.
	money = `(?:credits?|balances?|billing|budgets?|funds|payments?|spend(?:ing)?|subscriptions?|plans?|wallet|prepa(?:id|yment)|` +
		`overages?|allowances?|allotments?|entitlements?|quotas?|usage|trial|invoices?|bills?|your capacity|arrear\w*|overdue|good standing|kontingent|guthaben|cr[eé]di(?:ts?|tos?)|forfait|abonnement|残高|プラン|잔액|사용량|요금제|余额|额度|配额|套餐|资源包|账单|账户|用量)`
	// spent: words for used-up things.
	spent = `(?:exceed(?:s|ed|ing)?|over (?:your|the|its)|reached|hit|exhaust(?:ed|s)?|deplet(?:ed|es)?|used (?:up|all)|consumed|out of|r[au]n out|` +
		`insufficient|(?:not|n't) (?:have )?(?:enough|sufficient)|too low|low|no (?:more|remaining|available)|(?:have|has|had|with) no|no|zero|0|negative|overdue|past due|unpaid|arrears?|arrearage|make sure|` +
		`spent|burn(?:ed|t) through|crossed|surpassed|ausgeschöpft|aufgebraucht|überschritten|erreicht|dépass|épuis|atteint|agotad[oa]|superad[oa]|alcanzado|excedid[oa]|esgotad[oa]|atingi\w+|達し|超え|초과|소진|부족|lapsed|expired|ended|(?:is|are) over|beyond|disabled|inactive|not active|(?:is|are|was|been) (?:blocked|disabled|suspended|paused)|不足|用尽|用完|耗尽|超出|超过|超限|达到|已达|欠费|过期|到期|上限)`
	// used: words of spent that suffice with a window.
	used = `(?:exceeded|reached|hit|exhausted|depleted|consumed|used (?:up|all)|spent|burn(?:ed|t) through)`
	// ceiling: nouns for a limit of unknown kind.
	ceiling = `(?:limits?|windows?|caps?|thresholds?|allocations?|l[ií]mite|한도|上限|限额|限制)`
	// owner: words that make a limit the account's.
	owner = `(?:you|your|you['’]ve|its|organi[sz]ation|org|workspace|team|accounts?|plan|keys?|free|members?|users?|projects?|company|` +
		`tier|claude|opus|sonnet|haiku|fable|gpt|gemini|codex|premium|pro|limit resets|您|账户)`
	// long: windows of an hour or more.
	long = `(?:daily|weekly|monthly|yearly|annual|per[ -](?:day|week|month|year|cycle)|(?:a|this|each|every|current|next) (?:day|week|month)|today|` +
		`\d+[- ]?h(?:(?:ou)?rs?)?\b|(?:billing|usage)[ -](?:cycle|period)|session (?:\w+ )?(?:limits?|usage|quota)|hourly|rpd|tpd|monat\w*|tages\w*|woche\w*|mensue?l|quotidien\w*|diári[oa]|diari[oa]|semanal|今月|이번 달|오늘|每日|每天|每周|每月|今日|本周|本月|小时)`
	// rate: words for too many requests at once.
	rate = `(?:rate[ -]?limit(?:s|ed|ing|er)?|too many (?:\w+ )?(?:requests?|tokens|calls|connections|attempts|sessions|messages)|throttl\w*|(?:requests?|tokens?|calls?|quer(?:y|ies)|limit\w*|exceed\w*|max\w*|quota|rate)\b.{0,60}\b(?:per[ -]|a |/ ?)(?:min(?:ute)?|sec(?:ond)?)\b|per[ -](?:min(?:ute)?|sec(?:ond)?)\b.{0,20}(?:limit|exceed|ceiling|quota|cap)|` +
		`\b[rtqi]p[ms]\b|concurren\w*|parallel (?:requests|calls)|simultaneous\w*|slow(?:ing)? down|(?:too|so|very) (?:fast|quickly|frequent(?:ly)?)|` +
		`request limit|requests? (?:rate|frequency)|rate (?:exceeded|increased|of requests)|frequency|burst|in-?flight|(?:zu viele|trop de|demasiad[ao]s|muitas) (?:anfragen|requêtes|solicitudes|peticiones|solicitações|requisições)|リクエストが多|요청이 너무|请求频率|频率|速率|并发|限流|请求过多|请求次数|过快|过于频繁)`
	// busy: words for a provider that cannot serve anyone.
	busy = `(?:overload\w*|overwhelm\w*|(?:traffic|load|demand) spikes?|\bshed(?:ding)?\b|(?:no|not|n['’]t|at|over|out of|insufficient|limited|lacks?|exceed\w*|exhausted|full) (?:\w+ ){0,3}capacity|capacity (?:\w+ ){0,2}(?:exceed\w*|exhaust\w*|reached|limit\w*|constrain\w*|unavailable|issues?|error)|` +
		`(?:high|heavy|peak|increased|elevated|unusual|excessive|unprecedented) (?:\w+ )?(?:demand|load|traffic|volume)|congest\w*|` +
		`\b(?:is|are|too|currently|server|engine|system|cluster|model|service) busy|(?:temporarily|currently|momentarily) (?:un|not )available|` +
		`internal (?:server )?error|server had an error|service (?:is )?(?:currently |temporarily )?(?:unavailable|not available)|unable to (?:handle|process|serve) .{0,20}requests? (?:at|right)|` +
		`bad gateway|gateway time-?out|(?:no|all|without) (?:\w+ ){0,2}(?:available|healthy|live|free) (?:\w+ )?(?:channels?|instances?|upstreams?|replicas?|workers?|providers?|servers?|backends?|endpoints?|nodes?)|` +
		`(?:queue|pool) (?:depth |size )?(?:is )?(?:full|exceeded|exhausted)|degraded|brownout|überlastet|surchargé|sobrec(?:argad|arregad)[oa]|混雑|混み合|과부하|(?:warming|starting|spinning) up|not ready|is loading|under maintenance|繁忙|过载|访问量过大|负载|饱和|拥挤)`
	// lacks: words for things that a plan excludes.
	lacks = `(?:(?:not|n['’]t|never|cannot be) (?:yet )?(?:included?|available|supported?|enabled|allowed|permitted|part|covered?|use[d]?|access(?:ible)?|eligible|entitled|have|cover|allow)\b.{0,60}\b(?:plans?|tiers?|subscriptions?|free (?:\w+ )?(?:users?|accounts?)|trial)` +
		`|\b(?:plans?|tiers?|subscriptions?|trial)\b.{0,30}\b(?:not|n['’]t|no longer|lacks?|excludes?)\b.{0,40}\b(?:include|cover|support|allow|access|have|permit|offer|eligible|entitle)` +
		`|only (?:be )?(?:available|offered|supported|included|enabled|for)\b.{0,40}\b(?:plans?|tiers?|subscri\w+|paid|pro|max|enterprise|team)\b` +
		`|\b(?:usage|subscription|plan|payment(?: method)?|credits?|billing|upgrade|purchase|tier|top-?up)\b.{0,20}\b(?:is |are |be )?(?:required|needed|necessary)` +
		`|\b(?:require[sd]?|needs?|must have|without) (?:\w+[ -]){0,4}?(?:credits?|subscription|plan|payment|billing|tier|upgrade|usage|membership)\b` +
		`|\bto (?:use|access|continue)\b.{0,60}\b(?:plans?|tiers?|subscriptions?)\b.{0,10}\b(?:upgrade|subscribe)|(?:upgrade|subscribe|purchase|buy|recharge|top up|add (?:a payment|credits|funds)|enable (?:extra|billing|overage))\b.{0,60}\bto (?:use|access|unlock|enable|continue|keep|resume)\b)`
	// thing: words that make a limit the request's or the agent's.
	thing = `(?:context(?: window| length)?|tokens?|prompts?|inputs?|outputs?|turns?|sizes?|lengths?|retr(?:y|ies)|time|files?|uploads?|memory|characters?|loops?|recursion|depth|images?|pages?|iterations?|steps?) (?:count )?limits?`
)

// near matches two families in one sentence, in either order.
func near(a, b string) string {
	return `(?:` + edged(a) + apart + words(b) + `|` + edged(b) + apart + words(a) + `)`
}

// apart separates two words. A single letter between two Chinese words is the edge of both.
const apart = `(?:.{0,60}?(?:\b|\P{Latin}))?`

// words matches a family up to the edge of its last word.
func words(of string) string { return of + `(?:\b|\P{Latin}|$)` }

// edged matches a family as whole words. Chinese has no spaces between words.
func edged(of string) string { return `(?:^|\b|\P{Latin})` + words(of) }

var (
	moneySpent  = regexp.MustCompile(near(money, spent) + `|\b(?:balance|wallet|quota|budget) is empty`)
	moneyAlone  = regexp.MustCompile(edged(money))
	windowSpent = regexp.MustCompile(near(long, used))
	boundSpent  = regexp.MustCompile(near(ceiling, `(?:`+spent+`|stop(?:s|ped)?|resets?)`))
	boundOwned  = regexp.MustCompile(edged(owner))
	boundAlone  = regexp.MustCompile(`^(?:\W|the )*limit (?:has been |was |is )?(?:reached|exceeded|exhausted|hit)`)
	longWindow  = regexp.MustCompile(`(?:^|\b|\P{Latin})` + long)
	rateWords   = regexp.MustCompile(rate)
	busyWords   = regexp.MustCompile(busy)
	lackWords   = regexp.MustCompile(lacks)
	otherLimit  = regexp.MustCompile(`\b` + thing + `\b`)
	ofMachine   = regexp.MustCompile(`\b(?:disk|storage|memory|inode|file ?system) (?:space )?(?:quotas?|limits?|usage)\b`)
	soleRequest = regexp.MustCompile(`(?:request|message|input|prompt) (?:is )?too (?:large|long|big)`)

	web       = regexp.MustCompile(`https?://\S+|\b[\w.-]+\.(?:ai|com|cn|io|dev|org)/`)
	fragment  = regexp.MustCompile(`#(?:token|rate|request|concurrency|qps|tpm|rpm)-?limit`)
	camel     = regexp.MustCompile(`([a-z])([A-Z][a-z])`)
	sentences = regexp.MustCompile(`[.;!?]+(?:\s|$)|\n+|[\x{3002}\x{ff1b}\x{ff01}\x{ff0c}]`)
)

// plainWords rewrites a text for the families: lower case, no addresses, and identifiers as words.
func plainWords(text string) string {
	text = web.ReplaceAllString(text[:min(len(text), maxFailureText)], " ")
	text = camel.ReplaceAllString(text, "$1 $2")
	text = strings.NewReplacer("e.g.", "eg", "_", " ", "’", "'", "\u00a0", " ", "‑", "-").Replace(text)
	return strings.ToLower(text)
}

type sentence string

func (s sentence) outspent() bool {
	text := string(s)
	window := longWindow.MatchString(text)
	if rateWords.MatchString(text) {
		return window
	}
	if ofMachine.MatchString(text) {
		return false
	}
	if moneySpent.MatchString(text) {
		return true
	}
	if windowSpent.MatchString(text) {
		return true
	}
	if boundAlone.MatchString(text) {
		return true
	}
	if otherLimit.MatchString(text) || !boundSpent.MatchString(text) {
		return false
	}
	return window || boundOwned.MatchString(text)
}

// excluded reports whether the account's plan lacks the requested thing.
func (s sentence) excluded() bool { return lackWords.MatchString(string(s)) }

func (s sentence) hurried() bool {
	text := string(s)
	if longWindow.MatchString(text) {
		return false
	}
	return rateWords.MatchString(text)
}

func (s sentence) crowded() bool { return busyWords.MatchString(string(s)) }

func anySentence(text string, is func(sentence) bool) bool {
	for _, one := range sentences.Split(text, maxSentences) {
		if is(sentence(one)) {
			return true
		}
	}
	return false
}

// maxSentences limits the sentences read in a message. Refusals have up to five.
const maxSentences = 40
