package fakegithub

import "maps"

// emit sends an event of a repository to the App, if it is installed there. The
// fields are completed with repository, sender, installation and organization.
func (s *Server) emit(event string, r *repository, sender *account, fields obj) {
	in := s.world.installationOf(r)
	if in == nil || !in.suspended.IsZero() {
		return
	}
	payload := obj{"repository": s.renderRepo(r), "sender": s.renderUser(sender),
		"installation": obj{"id": in.id, "node_id": nodeID("Integration", in.id)}}
	if event == "push" { // GitHub sends these two as numbers here
		repo := payload["repository"].(obj)
		repo["created_at"], repo["pushed_at"], repo["master_branch"] = r.created.Unix(), r.pushed.Unix(), r.defaultBranch
		repo["owner"].(obj)["name"] = r.owner.login
	}
	if r.owner.kind == "Organization" {
		payload["organization"] = s.renderOrganization(r.owner)
	}
	maps.Copy(payload, fields)
	addProperties(payload)
	s.courier.add(newDelivery(event, payload, in.id, r.id))
}

// addProperties gives every repository of a payload the custom_properties that
// webhooks carry and lists of the REST API do not.
func addProperties(payload obj) {
	repos := []any{payload["repository"]}
	if pull, ok := payload["pull_request"].(obj); ok {
		for _, side := range []string{"head", "base"} {
			repos = append(repos, pull[side].(obj)["repo"])
		}
	}
	for _, repo := range repos {
		if body, ok := repo.(obj); ok { // the repository of a head may be gone
			body["custom_properties"] = obj{}
		}
	}
}

// emitApp sends an event that belongs to the installation, not to a repository.
func (s *Server) emitApp(event string, in *installation, sender *account, fields obj) {
	payload := obj{"installation": s.renderInstallation(in), "sender": s.renderUser(sender)}
	maps.Copy(payload, fields)
	s.courier.add(newDelivery(event, payload, in.id, 0))
}

func newDelivery(event string, payload obj, installationID, repositoryID int64) *delivery {
	action, ok := payload["action"].(string)
	if !ok {
		action = ""
	}
	return &delivery{guid: newGUID(), event: event, action: action, payload: encode(payload),
		installationID: installationID, repositoryID: repositoryID}
}

// emitThread sends an issues or a pull_request event.
func (s *Server) emitThread(r *repository, t *thread, action string, sender *account, extra obj) {
	fields := obj{"action": action}
	event := "issues"
	if t.pull != nil {
		event = "pull_request"
		fields["number"], fields["pull_request"] = t.number, s.renderPull(r, t)
	} else {
		fields["issue"] = s.renderIssue(r, t)
	}
	maps.Copy(fields, extra)
	s.emit(event, r, sender, fields)
}

// emitComment sends an issue_comment event.
func (s *Server) emitComment(r *repository, t *thread, c *comment, action string, sender *account, extra obj) {
	fields := obj{"action": action, "issue": s.renderIssue(r, t), "comment": s.renderComment(r, t, c)}
	maps.Copy(fields, extra)
	s.emit("issue_comment", r, sender, fields)
}

// emitCheck sends a check_run event.
func (s *Server) emitCheck(r *repository, run *checkRun, action string, sender *account, extra obj) {
	fields := obj{"action": action, "check_run": s.renderCheckRunEvent(r, run)}
	maps.Copy(fields, extra)
	s.emit("check_run", r, sender, fields)
}
