package fakegithub

import (
	"net/url"
	"strings"
)

// route is one documented operation. In a pattern {number} and {id} take
// digits only, {x...} takes one or more segments, every other {x} takes one.
type route struct {
	name       string // "GET /repos/{owner}/{repo}"
	method     string
	segments   []string
	access     access
	permission string // any one of them, separated by |
	handle     func(*Server, *call) *reply
}

func on(name string, who access, permission string, handle func(*Server, *call) *reply) route {
	method, path, _ := strings.Cut(name, " ")
	return route{name: name, method: method, segments: strings.Split(path, "/")[1:], access: who, permission: permission, handle: handle}
}

func routeTable() []route {
	const repo = " /repos/{owner}/{repo}"
	const talk = "issues:write|pull_requests:write"
	const listen = "issues:read|pull_requests:read"
	return []route{
		on("GET /app", asApp, "", (*Server).getApp),
		on("GET /app/installations", asApp, "", (*Server).listInstallations),
		on("GET /app/installations/{id}", asApp, "", (*Server).getInstallation),
		on("POST /app/installations/{id}/access_tokens", asApp, "", (*Server).createToken),
		on("GET /app/hook/config", asApp, "", (*Server).getHookConfig),
		on("GET /app/hook/deliveries", asApp, "", (*Server).listDeliveries),
		on("GET /app/hook/deliveries/{id}", asApp, "", (*Server).getDelivery),
		on("POST /app/hook/deliveries/{id}/attempts", asApp, "", (*Server).attemptDelivery),
		on("POST /app-manifests/{code}/conversions", anyone, "", (*Server).convertManifest),
		on("GET /installation/repositories", asToken, "", (*Server).listInstallationRepos),
		on("DELETE /installation/token", asToken, "", (*Server).revokeToken),
		on("GET /rate_limit", anyone, "", (*Server).getRateLimit),
		on("GET /user", asToken, "", (*Server).getSelf),
		on("GET /users/{login}", anyone, "", (*Server).getUser),
		on("GET"+repo, asToken, "metadata:read", (*Server).getRepo),
		on("GET"+repo+"/installation", asApp, "", (*Server).getRepoInstallation),
		on("GET"+repo+"/collaborators/{login}/permission", asToken, "metadata:read", (*Server).getPermission),
		on("GET"+repo+"/contents", asToken, "contents:read", (*Server).getContents),
		on("GET"+repo+"/contents/{path...}", asToken, "contents:read", (*Server).getContents),
		on("GET"+repo+"/git/ref/{ref...}", asToken, "contents:read", (*Server).getRef),
		on("DELETE"+repo+"/git/refs/{ref...}", asToken, "contents:write", (*Server).deleteRef),
		on("GET"+repo+"/branches/{branch...}", asToken, "contents:read", (*Server).getBranch),
		on("GET"+repo+"/issues", asToken, listen, (*Server).listIssues),
		on("POST"+repo+"/issues", asToken, "issues:write", (*Server).createIssue),
		on("GET"+repo+"/issues/{number}", asToken, listen, (*Server).getIssue),
		on("PATCH"+repo+"/issues/{number}", asToken, talk, (*Server).updateIssue),
		on("GET"+repo+"/issues/{number}/comments", asToken, listen, (*Server).listComments),
		on("POST"+repo+"/issues/{number}/comments", asToken, talk, (*Server).createComment),
		on("GET"+repo+"/issues/comments/{id}", asToken, listen, (*Server).getComment),
		on("PATCH"+repo+"/issues/comments/{id}", asToken, talk, (*Server).updateComment),
		on("DELETE"+repo+"/issues/comments/{id}", asToken, talk, (*Server).deleteComment),
		on("GET"+repo+"/issues/{number}/labels", asToken, listen, (*Server).listLabels),
		on("POST"+repo+"/issues/{number}/labels", asToken, talk, (*Server).addLabels),
		on("DELETE"+repo+"/issues/{number}/labels/{label}", asToken, talk, (*Server).removeLabel),
		on("GET"+repo+"/issues/{number}/reactions", asToken, listen, (*Server).listIssueReactions),
		on("POST"+repo+"/issues/{number}/reactions", asToken, talk, (*Server).reactToIssue),
		on("GET"+repo+"/issues/comments/{id}/reactions", asToken, listen, (*Server).listCommentReactions),
		on("POST"+repo+"/issues/comments/{id}/reactions", asToken, talk, (*Server).reactToComment),
		on("POST"+repo+"/pulls/comments/{id}/reactions", asToken, "pull_requests:write", (*Server).reactToReviewComment),
		on("GET"+repo+"/pulls", asToken, "pull_requests:read", (*Server).listPulls),
		on("POST"+repo+"/pulls", asToken, "pull_requests:write", (*Server).createPull),
		on("GET"+repo+"/pulls/{number}", asToken, "pull_requests:read", (*Server).getPull),
		on("PATCH"+repo+"/pulls/{number}", asToken, "pull_requests:write", (*Server).updatePull),
		on("GET"+repo+"/pulls/{number}/reviews", asToken, "pull_requests:read", (*Server).listReviews),
		on("GET"+repo+"/pulls/{number}/comments", asToken, "pull_requests:read", (*Server).listReviewComments),
		on("POST"+repo+"/check-runs", asToken, "checks:write", (*Server).createCheckRun),
		on("GET"+repo+"/check-runs/{id}", asToken, "checks:read", (*Server).getCheckRun),
		on("GET"+repo+"/check-runs/{id}/annotations", asToken, "checks:read", (*Server).listAnnotations),
		on("PATCH"+repo+"/check-runs/{id}", asToken, "checks:write", (*Server).updateCheckRun),
		on("GET"+repo+"/commits/{ref...}/pulls", asToken, "pull_requests:read", (*Server).listPullsOfCommit),
		on("GET"+repo+"/commits/{ref...}/check-runs", asToken, "checks:read", (*Server).listCheckRuns),
	}
}

// match finds the route of an escaped path below the API base and the values of
// its parameters.
func match(routes []route, method, escaped string) (*route, map[string]string) {
	segments := strings.Split(strings.Trim(escaped, "/"), "/")
	for i, raw := range segments {
		if plain, err := url.PathUnescape(raw); err == nil {
			segments[i] = plain
		}
	}
	for i := range routes {
		rt := &routes[i]
		if rt.method != method {
			continue
		}
		if params, ok := bind(rt.segments, segments); ok {
			return rt, params
		}
	}
	return nil, nil
}

func bind(pattern, segments []string) (map[string]string, bool) {
	params := map[string]string{}
	spare := len(segments) - len(pattern) // what a {x...} takes beyond one segment
	at := 0
	for _, p := range pattern {
		if at >= len(segments) {
			return nil, false
		}
		name, isParam := strings.CutPrefix(p, "{")
		name = strings.TrimSuffix(name, "}")
		switch {
		case !isParam && p != segments[at]:
			return nil, false
		case strings.HasSuffix(name, "..."):
			if spare < 0 {
				return nil, false
			}
			params[strings.TrimSuffix(name, "...")] = strings.Join(segments[at:at+1+spare], "/")
			at += spare
		case isParam && (name == "id" || name == "number") && !digits(segments[at]):
			return nil, false
		case isParam:
			params[name] = segments[at]
		}
		at++
	}
	return params, at == len(segments)
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
