package handlers

// GitHubAppAuthorization handles a user's revoked login of the App ("Revoke" on their settings page at GitHub):
// their sessions on the pages end.
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
