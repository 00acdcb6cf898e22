// Package web serves what people and machines outside GitHub look at: the
// status page, one page for each thread, health, readiness and metrics. It also
// mounts the webhook endpoint, which it knows nothing about.
//
// The pages are renderings of the same fold that the check runs show. They are
// plain HTML without scripts or outside resources. Every string in them may come
// from a stranger at GitHub or from an agent: it is cleaned of invisible
// characters, cut, and escaped by html/template, and only http and https
// addresses become links. The pages ask nobody for a login; whoever can reach
// the address can read them.
package web
