package handlers

// GitHubAppAuthorization ends the page sessions of users who revoke the App's login at GitHub.
type GitHubAppAuthorization struct{ handler }

func authorization(p *payload) []Activity {
	if p.Action != "revoked" {
		return nil
	}
	if p.Sender.ID == 0 {
		return []Activity{{What: unsent}}
	}
	return []Activity{{What: signedOut{p.Sender.ID}}}
}
